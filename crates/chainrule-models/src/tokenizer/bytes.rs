//! The byte alphabet of GPT-2's tokenizer, with a printable character for each byte.

use std::sync::OnceLock;

/// Bytes that represent themselves: the printable ones of Latin-1.
fn is_plain(b: u8) -> bool {
    matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

/// The character of each byte: itself, or in order the characters from U+0100 on.
fn alphabet() -> &'static [char; 256] {
    static ALPHABET: OnceLock<[char; 256]> = OnceLock::new();
    ALPHABET.get_or_init(|| {
        let mut next = 0x100;
        std::array::from_fn(|b| {
            let b = b as u8;
            if is_plain(b) {
                return char::from(b);
            }
            next += 1;
            char::from_u32(next - 1).unwrap_or_default()
        })
    })
}

/// The characters of a text's bytes.
pub fn to_alphabet(text: &str) -> String {
    text.bytes().map(|b| alphabet()[usize::from(b)]).collect()
}

/// The bytes of a token; one with another character, such as an added token, is its own text.
pub fn from_alphabet(token: &str) -> Vec<u8> {
    let byte = |c: char| match u8::try_from(u32::from(c)) {
        Ok(b) if is_plain(b) => Some(b),
        Ok(_) => None,
        Err(_) => alphabet().iter().position(|&own| own == c).map(|b| b as u8),
    };
    let bytes: Option<Vec<u8>> = token.chars().map(byte).collect();
    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let all: std::collections::HashSet<char> = alphabet().iter().copied().collect();
        assert_eq!(all.len(), 256);
        assert_eq!(to_alphabet(" é\n"), "ĠÃ©Ċ");
        assert_eq!(from_alphabet("ĠÃ©Ċ"), " é\n".as_bytes());
        assert_eq!(from_alphabet("<|é→|>"), "<|é→|>".as_bytes());
    }
}
