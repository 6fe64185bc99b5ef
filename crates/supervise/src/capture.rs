//! Keeps output within bounds: head and tail are kept, the middle of a flood is counted and dropped.

use std::collections::VecDeque;

/// The number of bytes kept of the beginning and of the end of each stream.
pub(crate) const KEEP: usize = 8 << 20;

/// The bytes of a stream, as far as they were kept.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Captured {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(KEEP - self.head.len());
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        // Only the last bytes of a large chunk can remain; cutting it first keeps the queue from growing past its limit.
        let rest = &rest[rest.len().saturating_sub(KEEP)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(KEEP);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// The number of bytes written, whether they were kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The beginning of the stream, as far as it was kept.
    pub fn beginning(&self) -> &[u8] {
        &self.head
    }

    /// The output as text: bytes that are not UTF-8 become replacement characters, and a dropped middle is named.
    pub fn text(&self) -> String {
        let dropped = self.total - (self.head.len() + self.tail.len()) as u64;
        // Head and tail are joined before decoding, because a character may lie across the two.
        if dropped == 0 {
            let whole: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let head = String::from_utf8_lossy(&self.head);
        format!("{head}\n[… {dropped} bytes left out …]\n{}", String::from_utf8_lossy(&tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_in_two_by_the_pipe_is_whole_again() {
        let mut captured = Captured::default();
        captured.push(&[0xc3]);
        captured.push(&[0xa4, 0xff]);
        assert_eq!(captured.text(), "ä\u{fffd}");
    }

    #[test]
    fn a_flood_keeps_its_head_and_its_tail() {
        let mut captured = Captured::default();
        captured.push(b"first");
        for _ in 0..40 {
            captured.push(&vec![b'x'; 1 << 20]);
        }
        captured.push(b"last");
        let text = captured.text();
        assert!(text.starts_with("firstx") && text.ends_with("xlast"));
        assert!(text.contains("bytes left out") && text.len() < 2 * KEEP + 100);
        assert_eq!(captured.total(), 9 + (40 << 20));
    }
}
