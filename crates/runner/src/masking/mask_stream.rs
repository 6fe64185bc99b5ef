//! Masks text that arrives in pieces.

use std::fmt;

use super::{Masker, pem_keys};

/// Masks a text that arrives in pieces, see [`Masker::new_stream`].
///
/// The output is the same as that of [`Masker::mask`] for the whole text, however it is split into pieces, also for overlong
/// lines: both search the same lines and cut long ones at the same positions. The price is delay: a line is written when its
/// `\n` arrives, or when it has grown beyond 64 KiB. The last 16 KiB of such a line are held back as an overlap, so that a
/// secret of that length is found wherever it lies; a longer one may be masked in part. At most two such lines are held.
pub struct MaskStream {
    masker: Masker,
    pem_state: pem_keys::PemState,
    /// Text that the first stage has not decided on yet.
    undecided_text: String,
    /// Text without private keys whose last line is incomplete.
    pending_lines: String,
}

impl MaskStream {
    pub(super) fn new(masker: Masker) -> MaskStream {
        MaskStream {
            masker,
            pem_state: pem_keys::PemState::default(),
            undecided_text: String::new(),
            pending_lines: String::new(),
        }
    }

    /// Takes the next piece and returns what can be written by now, often nothing.
    #[must_use]
    pub fn push_chunk(&mut self, chunk: &str) -> String {
        self.undecided_text.push_str(chunk);
        let searched_length = self.pending_lines.len();
        // Private keys span lines, so they are removed before the text is split into lines.
        self.collapse_keys(false);
        let max_line = self.masker.compiled.line_limits.max_line;
        let mut masked_output = String::new();
        // Only new text can contain a line end, so a line is not searched again for every piece.
        let complete_length = self.pending_lines.as_bytes()[searched_length..]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| searched_length + newline + 1);
        let mut masked_length = complete_length;
        let copied_until = self.masker.mask_lines(&self.pending_lines[..complete_length], &mut masked_output);
        masked_output.push_str(&self.pending_lines[copied_until..complete_length]);
        // A line without an end is masked in windows, so that memory stays bounded.
        while self.pending_lines.len() - masked_length >= max_line {
            masked_length += self.masker.mask_line_start(&self.pending_lines[masked_length..], &mut masked_output);
        }
        self.pending_lines.drain(..masked_length);
        masked_output
    }

    /// Ends the text and returns the rest of it. The stream of a live agent never ends this way: only its complete lines are
    /// shown.
    #[cfg(test)]
    #[must_use]
    pub fn finish_text(mut self) -> String {
        self.collapse_keys(true);
        self.masker.mask_keyless(&self.pending_lines).into_owned()
    }

    fn collapse_keys(&mut self, is_last: bool) {
        let pem_patterns = &self.masker.compiled.pem_patterns;
        let taken_length = pem_keys::collapse_keys(
            pem_patterns,
            &mut self.pem_state,
            &self.undecided_text,
            is_last,
            &mut self.pending_lines,
        );
        self.undecided_text.drain(..taken_length);
    }
}

impl fmt::Debug for MaskStream {
    /// Shows nothing of the text, which is not masked yet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskStream").finish_non_exhaustive()
    }
}
