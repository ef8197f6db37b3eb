//! Text that is put together while constants are evaluated: what the compiler's messages are made of.

/// Text of at most `N` bytes; what is longer is cut.
pub(super) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// The same with `more` at its end; when it does not fit, with nothing of it.
    pub(super) const fn with(mut self, more: &str) -> Self {
        let more = more.as_bytes();
        if more.len() > N - self.len {
            return self;
        }
        let mut i = 0;
        while i < more.len() {
            self.bytes[self.len + i] = more[i];
            i += 1;
        }
        self.len += more.len();
        self
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn as_str(&self) -> &str {
        // Whole texts were added, so it is valid.
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        const TEXT: Text<8> = Text::new().with("größe").with("x").with("y");
        assert_eq!((TEXT.as_str(), TEXT.len()), ("größex", 8));
    }
}
