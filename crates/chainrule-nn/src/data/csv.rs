//! CSV tables of numbers.

use std::path::Path;

use super::file;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// A table of numbers, with column names if the first line has them.
///
/// ```
/// use chainrule::data::Table;
/// let table = Table::parse("x,y\n1,2.5\n-3e2, 4\n")?;
/// assert_eq!(
///     (table.names(), table.column(1)),
///     (&["x".to_string(), "y".to_string()][..], vec![2.5, 4.0])
/// );
/// let error = Table::parse("x,y\n1,2\n1,zwei\n").unwrap_err().to_string();
/// assert_eq!(error, "csv: line 3: \"zwei\" in column `y` is not a finite number");
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    names: Vec<String>,
    numbers: Vec<f64>,
}

impl Table {
    /// Reads a file. An error names the line that is wrong.
    pub fn read(path: impl AsRef<Path>) -> Result<Table> {
        let path = path.as_ref();
        parse(&file::text(path)?).map_err(|why| file::wrong(path, why))
    }

    /// Parses a text: one row a line, blank lines ignored. A first line without any number is the
    /// header.
    ///
    /// Errors for a row with more or fewer fields than the first, a field that is not a finite
    /// number or too large for f32, and a table without rows.
    pub fn parse(text: &str) -> Result<Table> {
        parse(text).map_err(|why| Error::argument("csv", why))
    }

    /// The names of the columns: those of the first line, or `column 1` and so on.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of rows; at least 1.
    pub fn rows(&self) -> usize {
        self.numbers.len() / self.names.len()
    }

    /// The numbers of a column.
    pub fn column(&self, at: usize) -> Vec<f64> {
        self.numbers.chunks(self.names.len()).map(|row| row[at]).collect()
    }

    /// The table as f32, `[rows, columns]`.
    pub fn tensor(&self) -> Result<Tensor> {
        let numbers: Vec<f32> = self.numbers.iter().map(|&x| x as f32).collect();
        Tensor::try_from_slice(&numbers, [self.rows(), self.names.len()])
    }
}

fn parse(text: &str) -> Result<Table, String> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty()).peekable();
    let Some(&(_, first)) = lines.peek() else {
        return Err("holds no numbers; give a table with commas between the fields".to_string());
    };
    let titles: Vec<&str> = fields(first).collect();
    let is_header = titles.iter().all(|field| field.parse::<f64>().is_err());
    let names: Vec<String> = match is_header {
        true => titles.iter().map(|&t| t.to_owned()).collect(),
        false => (1..=titles.len()).map(|i| format!("column {i}")).collect(),
    };
    if is_header {
        lines.next();
    }
    let mut numbers = Vec::new();
    for (line, row) in lines {
        let before = numbers.len();
        for (i, field) in fields(row).enumerate() {
            match field.parse::<f64>() {
                Ok(x) if (x as f32).is_finite() => numbers.push(x),
                parsed => {
                    let field: String = field.chars().take(40).collect();
                    let column = names.get(i).map_or("?", String::as_str);
                    let why = match parsed {
                        Ok(x) if x.is_finite() => "too large: f32 ends at 3.4e38",
                        _ => "not a finite number",
                    };
                    return Err(format!(
                        "line {line}: {field:?} in column `{}` is {why}",
                        column.escape_debug()
                    ));
                }
            }
        }
        let found = numbers.len() - before;
        if found != names.len() {
            return Err(format!("line {line}: {found} fields where {} are wanted", names.len()));
        }
    }
    if numbers.is_empty() {
        return Err("holds no numbers; give a table with commas between the fields".to_string());
    }
    Ok(Table { names, numbers })
}

/// The fields of a line, trimmed and without quotation marks.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| {
        let field = field.trim();
        field.strip_prefix('"').and_then(|f| f.strip_suffix('"')).unwrap_or(field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_and_without_names() {
        let table = Table::parse("1,2\r\n\r\n3,4").unwrap();
        assert_eq!((table.rows(), table.column(0)), (2, vec![1.0, 3.0]));
        assert_eq!(table.names(), ["column 1", "column 2"]);
        assert_eq!(table.tensor().unwrap().to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
        let quoted = Table::parse("\"a\",\"b c\"\n\"1\",2\n").unwrap();
        assert_eq!(
            (quoted.names(), quoted.column(1)),
            (&["a".into(), "b c".into()][..], vec![2.0])
        );
    }

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        for (text, want) in [
            ("", "holds no numbers"),
            ("x,y\n", "holds no numbers"),
            ("x,y\n1,2\n\n3\n", "line 4: 1 fields where 2 are wanted"),
            ("1,2\n3,4,5\n", "line 2: 3 fields where 2"),
            ("1,2\nnan,5\n", "line 2: \"nan\""),
            ("1,2\n1e999,5\n", "line 2: \"1e999\""),
            ("a,b\n1,2\n\n1e39,5\n", "line 4: \"1e39\" in column `a` is too large"),
            ("1,2\n1,-3.5e38\n", "line 2: \"-3.5e38\" in column `column 2` is too large"),
            ("a\x1b[2Jb,c\nx,1\n", "in column `a\\u{1b}[2Jb`"),
            ("a,b\n1,\n", "line 2: \"\" in column `b`"),
        ] {
            let why = Table::parse(text).unwrap_err().to_string();
            assert!(why.contains(want), "{text:?}: {why}");
        }
    }
}
