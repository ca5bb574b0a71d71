//! Comments keep to 100 columns, and their sentences begin with the noun of the field.

use std::path::Path;

use super::{files, read, root, short};

const COLUMNS: usize = 100;

/// Openings that stand in place of a noun: "What is subtracted" is the mean.
const OPENINGS: &[&str] = &[
    "What",
    "Whatever",
    "Who",
    "Whoever",
    "Whose",
    "Where",
    "Wherever",
    "Which",
    "Of",
    "That of",
    "Those of",
    "So many",
    "So much",
    "As many",
    "As much",
    "How many",
    "How much",
    "How far",
    "How often",
    "How long",
    "From so many",
    "From what",
    "By what",
    "To what",
    "With what",
];

/// Sentences that may begin so: a part of the path, the beginning, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// A paragraph of prose: the line it begins on, and its text.
type Paragraph = (usize, String);

/// Paragraphs of lines that are prose already: parted at blank lines, list items, headings and
/// fences, without code and tables.
fn paragraphs<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Vec<Paragraph> {
    let mut out: Vec<Paragraph> = Vec::new();
    let (mut in_code, mut goes_on, mut last) = (false, false, 0);
    for (number, line) in lines {
        let text = line.trim();
        goes_on &= number == last + 1;
        last = number;
        if text.starts_with("```") {
            in_code = !in_code;
            goes_on = false;
            continue;
        }
        if in_code || text.is_empty() || text.starts_with('|') || text.starts_with(">>>") {
            goes_on = false;
            continue;
        }
        let item = ["- ", "* ", "# ", "## ", "### "].iter().find_map(|m| text.strip_prefix(m));
        let text = item.unwrap_or(text);
        match out.last_mut().filter(|_| goes_on && item.is_none()) {
            Some((_, paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            None => out.push((number, text.to_owned())),
        }
        goes_on = true;
    }
    out
}

/// The comment on a line of Rust, if the line is one: its marker and its text.
fn rust_comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let marker = ["///", "//!", "//"].into_iter().find(|marker| line.starts_with(marker))?;
    Some((marker, &line[marker.len()..]))
}

fn of_rust(source: &str) -> Vec<Paragraph> {
    let mut out = Vec::new();
    for kind in ["///", "//!", "//"] {
        let lines = source.lines().enumerate();
        let own = lines.filter_map(|(i, line)| match rust_comment(line) {
            Some((marker, text)) if marker == kind => Some((i + 1, text)),
            _ => None,
        });
        out.extend(paragraphs(own));
    }
    out
}

/// Lines of comments and docstrings of Python.
fn python_prose(source: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let (mut within, mut in_data) = (false, false);
    for (i, line) in source.lines().enumerate() {
        let text = line.trim_start();
        let opens = text.trim_start_matches('r').starts_with("\"\"\"");
        let turns = line.matches("\"\"\"").count() % 2 == 1;
        if in_data {
            in_data ^= turns;
        } else if within || opens {
            out.push((i + 1, text.trim_start_matches('r').trim_matches('"')));
            within ^= turns;
        } else {
            out.extend(text.strip_prefix("# ").map(|comment| (i + 1, comment)));
            in_data = turns;
        }
    }
    out
}

/// The comment on a line of TypeScript, Svelte or CSS, if the line is one: its marker and its text.
fn web_comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let marker =
        ["///", "//", "/**", "/*", "<!--", "* "].into_iter().find(|m| line.starts_with(m))?;
    let text = line[marker.len()..].trim_end_matches("*/").trim_end_matches("-->");
    Some((marker, text.trim_end()))
}

/// Paragraphs of comments that go on from line to line; a line of code between parts them.
fn of_web(source: &str) -> Vec<Paragraph> {
    let lines = source.lines().enumerate();
    paragraphs(lines.filter_map(|(i, line)| Some((i + 1, web_comment(line)?.1))))
}

/// The sentences of a paragraph.
fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.char_indices().find_map(|(i, c)| {
        let after = &rest[i + c.len_utf8()..];
        let ends = ['.', '!', '?', ':'].contains(&c)
            && after.starts_with(' ')
            && after.trim_start().starts_with(char::is_uppercase);
        ends.then_some(i + c.len_utf8())
    }) {
        out.push(rest[..at].trim());
        rest = rest[at..].trim();
    }
    out.push(rest.trim());
    out
}

/// The opening in place of a noun, if the sentence has one. A question may begin with it.
fn opening(sentence: &str) -> Option<&'static str> {
    let sentence = sentence.trim_start_matches(['*', '_', '(', '[']);
    let begins = |opening: &&&str| {
        sentence.strip_prefix(**opening).is_some_and(|rest| {
            rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '\'' && c != '_')
        })
    };
    OPENINGS.iter().find(begins).copied().filter(|_| !sentence.ends_with('?'))
}

#[test]
fn openings_are_found_in_prose_alone() {
    let source = "/// What is subtracted. Fine: Whose?\n///\n/// ```\n/// Where(1)\n/// ```\n\
                  fn f() {} // What\n// The mean. So many are left,\n// Of two the first.\n";
    let found: Vec<(usize, &str)> = of_rust(source)
        .iter()
        .flat_map(|(line, text)| {
            sentences(text)
                .into_iter()
                .filter_map(|s| opening(s))
                .map(|o| (*line, o))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(found, [(1, "What"), (7, "So many")]);
    let python = "x = 1\n\"\"\"Whose memory.\n\nText.\n\"\"\"\n# Of one.\n";
    let prose = paragraphs(python_prose(python).into_iter());
    let openings: Vec<_> = prose.iter().filter_map(|(_, text)| opening(text)).collect();
    assert_eq!(openings, ["Whose", "Of"]);
    let web = "/* What is drawn. */\nlet x = 1; // What\n// The width. Of\n// two, one.\n\n<!-- Who -->\n";
    let paragraphs = of_web(web);
    let found = paragraphs.iter().flat_map(|(line, text)| {
        sentences(text).into_iter().filter_map(opening).map(|opening| (*line, opening))
    });
    assert_eq!(found.collect::<Vec<_>>(), [(1, "What"), (3, "Of"), (6, "Who")]);
}

/// The paragraphs of a file of the repository.
fn prose_of(path: &Path) -> Vec<Paragraph> {
    let source = read(path);
    match path.extension().and_then(|e| e.to_str()) {
        Some("rs") => of_rust(&source),
        Some("py") => paragraphs(python_prose(&source).into_iter()),
        Some("ts" | "svelte" | "css") => of_web(&source),
        _ => paragraphs(source.lines().enumerate().map(|(i, line)| (i + 1, line))),
    }
}

#[test]
fn sentences_begin_with_a_noun() {
    let mut all = files(&root().join("crates"), &["rs", "py"]);
    all.extend(files(&root().join("web/src"), &["ts", "svelte", "css"]));
    all.extend(files(&root().join("docs/src"), &["md"]));
    all.extend(["README.md", "ARCHITECTURE.md"].map(|page| root().join(page)));
    let mut unused: Vec<_> = EXCEPTIONS.iter().collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in &all {
        let name = short(path);
        for (line, text) in prose_of(path) {
            for sentence in sentences(&text) {
                count += 1;
                if opening(sentence).is_none() {
                    continue;
                }
                let excepted = |(file, start, _): &(&str, &str, &str)| {
                    name.contains(file) && sentence.starts_with(start)
                };
                match EXCEPTIONS.iter().any(excepted) {
                    true => unused.retain(|e| !excepted(e)),
                    false => wrong.push(format!("{name}:{line}: {sentence}")),
                }
            }
        }
    }
    assert!(count > 10_000, "{count} sentences found");
    assert!(wrong.is_empty(), "begin with the noun of the field:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "not needed any more: {unused:?}");
}

#[test]
fn comments_keep_to_100_columns() {
    let mut long = Vec::new();
    let mut all = files(&root().join("crates"), &["rs", "py"]);
    all.extend(files(&root().join("web/src"), &["ts", "svelte", "css"]));
    for path in all {
        let source = read(&path);
        let numbered = || (1..).zip(source.lines());
        let prose: Vec<usize> = match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => {
                numbered().filter_map(|(i, line)| rust_comment(line).map(|_| i)).collect()
            }
            Some("py") => python_prose(&source).into_iter().map(|(i, _)| i).collect(),
            // A directive cannot be broken.
            _ => numbered()
                .filter(|(_, line)| !line.contains("svelte-ignore"))
                .filter_map(|(i, line)| web_comment(line).map(|_| i))
                .collect(),
        };
        for (i, line) in (1..).zip(source.lines()) {
            if line.chars().count() > COLUMNS && prose.contains(&i) {
                long.push(format!("{}:{i}", short(&path)));
            }
        }
    }
    assert!(long.is_empty(), "comments of more than {COLUMNS} columns:\n{}", long.join("\n"));
}

/// A merge that was not finished leaves lines that begin with seven of one sign.
#[test]
fn no_file_has_marks_of_a_merge() {
    let extensions = ["rs", "py", "pyi", "md", "toml", "svelte", "ts", "css", "html", "txt"];
    let marks = ["<", "=", ">"].map(|sign| sign.repeat(7));
    let mut marked = Vec::new();
    for path in files(&root(), &extensions) {
        for (i, line) in (1..).zip(read(&path).lines()) {
            if marks.iter().any(|m| line == m || line.starts_with(&format!("{m} "))) {
                marked.push(format!("{}:{i}", short(&path)));
            }
        }
    }
    assert!(marked.is_empty(), "marks of a merge:\n{}", marked.join("\n"));
}
