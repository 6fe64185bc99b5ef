//! Keeps output within bounds: head and tail are kept, the middle of a flood is counted and dropped.

use std::collections::VecDeque;

/// The number of bytes kept of the beginning and of the end of each stream.
pub(crate) const MAX_KEPT_BYTES: usize = 8 << 20;

/// The bytes of a stream, as far as they were kept.
#[derive(Clone, Debug, Default)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

impl CapturedOutput {
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let head_length = bytes.len().min(MAX_KEPT_BYTES - self.head.len());
        let (head_bytes, tail_bytes) = bytes.split_at(head_length);
        self.head.extend_from_slice(head_bytes);
        // Only the last bytes of a large chunk can remain; cutting it first keeps the queue from growing past its limit.
        let tail_bytes = &tail_bytes[tail_bytes.len().saturating_sub(MAX_KEPT_BYTES)..];
        let excess = (self.tail.len() + tail_bytes.len()).saturating_sub(MAX_KEPT_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(tail_bytes);
    }

    /// The number of bytes written, whether they were kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The beginning of the stream, as far as it was kept.
    pub fn kept_head(&self) -> &[u8] {
        &self.head
    }

    /// The output as text: bytes that are not UTF-8 become replacement characters, and a dropped middle is named.
    pub fn to_text(&self) -> String {
        let dropped_bytes = self.total_bytes - (self.head.len() + self.tail.len()) as u64;
        // Head and tail are joined before decoding, because a character may lie across the two.
        if dropped_bytes == 0 {
            let all_bytes: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
            return String::from_utf8_lossy(&all_bytes).into_owned();
        }
        let tail_bytes: Vec<u8> = self.tail.iter().copied().collect();
        let head_text = String::from_utf8_lossy(&self.head);
        format!("{head_text}\n[… {dropped_bytes} bytes left out …]\n{}", String::from_utf8_lossy(&tail_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_split_by_the_pipe_is_joined_again() {
        let mut captured = CapturedOutput::default();
        captured.push_bytes(&[0xc3]);
        captured.push_bytes(&[0xa4, 0xff]);
        assert_eq!(captured.to_text(), "ä\u{fffd}");
    }

    #[test]
    fn a_flood_keeps_its_head_and_its_tail() {
        let mut captured = CapturedOutput::default();
        captured.push_bytes(b"first");
        for _ in 0..40 {
            captured.push_bytes(&vec![b'x'; 1 << 20]);
        }
        captured.push_bytes(b"last");
        let captured_text = captured.to_text();
        assert!(captured_text.starts_with("firstx") && captured_text.ends_with("xlast"));
        assert!(captured_text.contains("bytes left out") && captured_text.len() < 2 * MAX_KEPT_BYTES + 100);
        assert_eq!(captured.total_bytes(), 9 + (40 << 20));
    }
}
