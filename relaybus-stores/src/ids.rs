//! Ids as tables of every store hold them.
//!
//! An event id is stored as 16 bytes when it is a UUID in its usual spelling, else as a zero byte and its text. Exact for
//! every text, and half the size of the text for the ids that the bus makes. Stored, so it never changes.

/// The stored form of an id or of a correlation id.
pub(crate) fn encode_id(id: &str) -> Vec<u8> {
    if let Some(bytes) = uuid_bytes(id) {
        return bytes.to_vec();
    }
    let mut bytes = Vec::with_capacity(id.len() + 2);
    bytes.push(0);
    // 16 bytes are a UUID: a second zero byte makes any other text longer.
    if id.len() == 15 {
        bytes.push(0);
    }
    bytes.extend_from_slice(id.as_bytes());
    bytes
}

/// The text of a stored id; `None` when another program wrote something else there.
pub(crate) fn decode_id(bytes: &[u8]) -> Option<String> {
    if let Ok(uuid) = <&[u8; 16]>::try_from(bytes) {
        return Some(uuid_text(uuid));
    }
    let text = bytes.strip_prefix(&[0])?;
    let text = if bytes.len() == 17 { text.strip_prefix(&[0]).unwrap_or(text) } else { text };
    String::from_utf8(text.to_vec()).ok()
}

const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// Where the two digits of each byte begin.
const DIGITS_OF: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
/// The value of each small hexadecimal digit; 255 for other characters.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value as usize] as usize] = value;
        value += 1;
    }
    values
};

fn uuid_bytes(id: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = id.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    let mut seen = 0;
    for (byte, place) in bytes.iter_mut().zip(DIGITS_OF) {
        let (high, low) = (VALUES[usize::from(text[place])], VALUES[usize::from(text[place + 1])]);
        seen |= high | low;
        *byte = (high << 4) | low;
    }
    (seen < 16 && HYPHENS.iter().all(|&place| text[place] == b'-')).then_some(bytes)
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_comes_back() {
        let long = "x".repeat(1024);
        for id in [
            "0193a3c4-1b2d-7c3e-8f40-123456789abc",
            "00000000-0000-0000-0000-000000000000",
            "0193A3C4-1B2D-7C3E-8F40-123456789ABC",
            "fifteen-letters",
            "sixteen-letters!",
            "fourteen-chars",
            "it's \"quoted\"\n",
            "é",
            "",
            &long,
        ] {
            let stored = encode_id(id);
            assert_eq!(decode_id(&stored).as_deref(), Some(id), "{stored:?}");
        }
        assert_eq!(encode_id("0193a3c4-1b2d-7c3e-8f40-123456789abc").len(), 16);
        assert_ne!(encode_id("fifteen-letters").len(), 16);
    }
}
