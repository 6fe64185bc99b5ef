//! Masks text that arrives in pieces.

use std::fmt;

use super::{Masker, pem};

/// Masks a text that arrives in pieces, see [`Masker::new_stream`].
///
/// The output is the same as that of [`Masker::mask`] for the whole text, however it is split into pieces, also for overlong
/// lines: both search the same lines and cut long ones at the same positions. The price is delay: a line is written when its
/// `\n` arrives, or when it has grown beyond 64 KiB. The last 16 KiB of such a line are held back as an overlap, so that a
/// secret of that length is found wherever it lies; a longer one may be masked in part. At most two such lines are held.
pub struct Stream {
    masker: Masker,
    state: pem::State,
    /// Text that the first stage has not decided on yet.
    raw: String,
    /// Text without private keys whose last line is incomplete.
    lines: String,
}

impl Stream {
    pub(super) fn new(masker: Masker) -> Stream {
        Stream { masker, state: pem::State::default(), raw: String::new(), lines: String::new() }
    }

    /// Takes the next piece and returns what can be written by now, often nothing.
    #[must_use]
    pub fn push(&mut self, chunk: &str) -> String {
        self.raw.push_str(chunk);
        let seen = self.lines.len();
        // Private keys span lines, so they are removed before the text is split into lines.
        self.collapse_keys(false);
        let limit = self.masker.inner.limits.line;
        let mut out = String::new();
        // Only new text can contain a line end, so a line is not searched again for every piece.
        let complete =
            self.lines.as_bytes()[seen..].iter().rposition(|b| *b == b'\n').map_or(0, |at| seen + at + 1);
        let mut done = complete;
        let copied = self.masker.mask_lines(&self.lines[..complete], &mut out);
        out.push_str(&self.lines[copied..complete]);
        // A line without an end is masked in windows, so that memory stays bounded.
        while self.lines.len() - done >= limit {
            done += self.masker.mask_start(&self.lines[done..], &mut out);
        }
        self.lines.drain(..done);
        out
    }

    /// Ends the text and returns the rest of it.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.collapse_keys(true);
        self.masker.mask_keyless(&self.lines).into_owned()
    }

    fn collapse_keys(&mut self, last: bool) {
        let patterns = &self.masker.inner.pem;
        let taken = pem::step(patterns, &mut self.state, &self.raw, last, &mut self.lines);
        self.raw.drain(..taken);
    }
}

impl fmt::Debug for Stream {
    /// Shows nothing of the text, which is not masked yet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}
