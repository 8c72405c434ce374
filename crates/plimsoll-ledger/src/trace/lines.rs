//! Lines of a file, packed or not, none longer than a line is.

use std::io::{BufRead, BufReader, Cursor, Read};

use super::unknown;
use crate::error::TraceError;
use crate::page::Wrong;

/// The longest line: a prompt of a million tokens in blocks of 16 has 62,500 names.
const LINE_MAX: usize = 16 << 20;
/// The most lines.
const LINES_MAX: u64 = 100_000_000;

/// The number of a line, counted from one, and its text without its end.
pub(super) type Line<'a> = (u64, Result<&'a str, Wrong>);

pub(super) struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    name: &'a str,
    buffer: Vec<u8>,
    line: u64,
}

impl<'a> Lines<'a> {
    /// The first bytes say whether it is packed, not the file's name.
    pub(super) fn of(mut input: impl Read + 'a, name: &'a str) -> Result<Self, TraceError> {
        let mut head = Vec::new();
        let read = input.by_ref().take(4).read_to_end(&mut head);
        let failed = |source| TraceError::Unreadable { name: name.to_owned(), line: 0, source };
        read.map_err(failed)?;
        let packed = head.starts_with(&[0x1f, 0x8b]);
        if head == [0x28, 0xb5, 0x2f, 0xfd] {
            return Err(unknown(
                name,
                "packed with zstd, which must be unpacked before".to_owned(),
            ));
        }
        let whole = Cursor::new(head).chain(input);
        let input: Box<dyn BufRead + 'a> = if packed {
            Box::new(BufReader::new(flate2::read::MultiGzDecoder::new(whole)))
        } else {
            Box::new(BufReader::new(whole))
        };
        Ok(Self { input, name, buffer: Vec::new(), line: 0 })
    }

    /// The next line that is not blank; none after the last.
    pub(super) fn next_text(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        loop {
            self.buffer.clear();
            let line = self.line + 1;
            let too_much =
                |problem| TraceError::TooMuch { name: self.name.to_owned(), line, problem };
            let mut input = (&mut self.input).take(LINE_MAX as u64 + 1);
            let read = input.read_until(b'\n', &mut self.buffer).map_err(|source| {
                TraceError::Unreadable { name: self.name.to_owned(), line: self.line, source }
            })?;
            if read == 0 {
                return Ok(None);
            }
            if read > LINE_MAX {
                return Err(too_much("is longer than 16 MiB, which no row of a log is"));
            }
            if line > LINES_MAX {
                return Err(too_much("is one more than can be held"));
            }
            self.line = line;
            if self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let text = std::str::from_utf8(&self.buffer).map(str::trim);
        Ok(Some((self.line, text.map_err(|_| Wrong::shape("is no text")))))
    }
}
