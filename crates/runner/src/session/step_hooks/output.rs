//! Decides how much of an output is kept: where it is cut, and what must not be split by that.

use crate::masking::Masker;

/// An output is cut at a line end if there is one this close before the limit.
const LINE_END_WINDOW: usize = 1 << 10;
/// This much after a cut is inspected, so that no secret shows because the cut goes through it.
const MASKING_LOOKAHEAD: usize = 16 << 10;

/// What a command printed on one stream, as far as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// The beginning of the output; if it was cut, a mark says so at the end.
    pub kept_text: String,
    pub is_truncated: bool,
    /// Everything that was printed.
    pub total_bytes: u64,
}

/// Keeps at most `max_bytes` of an output; `output_start` is the beginning of its `total_bytes`.
pub(super) fn capture_output(output_start: &[u8], total_bytes: u64, max_bytes: usize, masker: &Masker) -> HookOutput {
    let Some(cut_position) = find_cut(output_start, total_bytes, max_bytes) else {
        let kept_text = masker.mask(&String::from_utf8_lossy(output_start)).into_owned();
        return HookOutput { kept_text, is_truncated: false, total_bytes };
    };
    let mask_up_to = |end_position: usize| {
        let kept_bytes = output_start.get(..end_position).unwrap_or(output_start);
        masker.mask(&String::from_utf8_lossy(kept_bytes)).into_owned()
    };
    // A secret is recognized only with its end in sight. Only what is the same with and without that end is shown.
    let mut kept_text = common_prefix(
        mask_up_to(cut_position),
        &mask_up_to(character_boundary(output_start, output_start.len().min(cut_position + MASKING_LOOKAHEAD))),
    );
    // A limit of zero means that the step is full, which was reported once already.
    if max_bytes > 0 {
        if !kept_text.is_empty() && !kept_text.ends_with('\n') {
            kept_text.push('\n');
        }
        kept_text.push_str(&format!("[OUTPUT TRUNCATED AT {}]", format_limit(max_bytes)));
    }
    HookOutput { kept_text, is_truncated: true, total_bytes }
}

fn format_limit(max_bytes: usize) -> String {
    if max_bytes.is_multiple_of(1 << 10) { format!("{}KB", max_bytes >> 10) } else { format!("{max_bytes} BYTES") }
}

/// Returns where an output is cut, or `None` if all of it is kept.
fn find_cut(output_start: &[u8], total_bytes: u64, max_bytes: usize) -> Option<usize> {
    if total_bytes <= max_bytes as u64 {
        return None;
    }
    let max_bytes = max_bytes.min(output_start.len());
    // Cutting at a line end keeps the kept text readable.
    let window = output_start.get(max_bytes.saturating_sub(LINE_END_WINDOW)..max_bytes).unwrap_or_default();
    match window.iter().rposition(|byte| *byte == b'\n') {
        Some(newline) => Some(max_bytes - window.len() + newline + 1),
        None => Some(character_boundary(output_start, max_bytes)),
    }
}

/// Returns the position, or the start of the character that a cut there would split.
fn character_boundary(bytes: &[u8], position: usize) -> usize {
    // A UTF-8 character has at most three bytes after its first one.
    let character_start = (position.saturating_sub(3)..position)
        .rev()
        .find(|index| bytes.get(*index).is_some_and(|byte| byte & 0xc0 != 0x80));
    let Some(character_start) = character_start else { return position };
    let character_length = match bytes.get(character_start) {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    if character_start + character_length > position { character_start } else { position }
}

/// Returns the common beginning of two texts.
fn common_prefix(mut first_text: String, second_text: &str) -> String {
    let shared_length = first_text
        .char_indices()
        .zip(second_text.chars())
        .find(|((_, first_char), second_char)| first_char != second_char)
        .map(|((difference, _), _)| difference);
    first_text.truncate(shared_length.unwrap_or(first_text.len().min(second_text.len())));
    first_text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_BYTES: usize = 65_536;

    fn find_cut_at_limit(bytes: &[u8]) -> Option<usize> {
        find_cut(bytes, bytes.len() as u64, MAX_BYTES)
    }

    /// This many letters, with line ends at these positions.
    fn letters(count: usize, ends: &[usize]) -> Vec<u8> {
        let mut bytes = vec![b'x'; count];
        for end in ends {
            bytes[*end] = b'\n';
        }
        bytes
    }

    #[test]
    fn exactly_as_much_as_may_be_is_not_cut() {
        assert_eq!(find_cut_at_limit(&letters(65_535, &[])), None);
        assert_eq!(find_cut_at_limit(&letters(65_536, &[])), None);
        assert_eq!(find_cut_at_limit(&letters(65_537, &[])), Some(65_536));
        assert_eq!(find_cut_at_limit(b""), None);
    }

    #[test]
    fn output_is_cut_at_a_line_end_in_the_last_kibibyte() {
        for (ends, at) in [
            // The last byte that is kept.
            (vec![MAX_BYTES - 1], MAX_BYTES),
            // The first byte that is not kept.
            (vec![MAX_BYTES], MAX_BYTES),
            (vec![MAX_BYTES - 1024], MAX_BYTES - 1023),
            (vec![MAX_BYTES - 1025], MAX_BYTES),
            (vec![MAX_BYTES - 900, MAX_BYTES - 800], MAX_BYTES - 799),
        ] {
            assert_eq!(find_cut_at_limit(&letters(MAX_BYTES + 10, &ends)), Some(at), "{ends:?}");
        }
        // The limit may be smaller than the window.
        assert_eq!(find_cut(b"ab\ncd", 5, 4), Some(3));
        assert_eq!(find_cut(b"abcd", 4, 3), Some(3));
        assert_eq!(find_cut(b"abcd", 4, 0), Some(0));
    }

    #[test]
    fn no_character_is_torn_apart() {
        for (character, torn) in [("ä", 1), ("€", 1), ("€", 2), ("😀", 1), ("😀", 2), ("😀", 3)] {
            let text = "x".repeat(MAX_BYTES - torn) + character + "behind";
            assert_eq!(find_cut_at_limit(text.as_bytes()), Some(MAX_BYTES - torn), "{character} {torn}");
            assert!(
                !capture_output(text.as_bytes(), text.len() as u64, MAX_BYTES, &Masker::new([]))
                    .kept_text
                    .contains('\u{fffd}')
            );
        }
        let text = "x".repeat(MAX_BYTES - 2) + "ä" + "behind";
        assert_eq!(find_cut_at_limit(text.as_bytes()), Some(MAX_BYTES));
        // Bytes that are not text are cut exactly at the limit.
        assert_eq!(find_cut_at_limit(&[0x80; MAX_BYTES + 9]), Some(MAX_BYTES));
        assert_eq!(find_cut_at_limit(&[0xff; MAX_BYTES + 9]), Some(MAX_BYTES));
    }

    #[test]
    fn a_cut_is_marked_and_nothing_else_is() {
        let masker = Masker::new([]);
        let capture = |bytes: &[u8], cap: usize| {
            let output = capture_output(bytes, bytes.len() as u64, cap, &masker);
            (output.kept_text, output.is_truncated)
        };
        assert_eq!(capture(&letters(MAX_BYTES, &[]), MAX_BYTES), ("x".repeat(MAX_BYTES), false));
        assert_eq!(
            capture(&letters(MAX_BYTES + 1, &[]), MAX_BYTES),
            ("x".repeat(MAX_BYTES) + "\n[OUTPUT TRUNCATED AT 64KB]", true)
        );
        let (text, _) = capture(&letters(MAX_BYTES + 1, &[MAX_BYTES - 5]), MAX_BYTES);
        assert!(text.ends_with("xx\n[OUTPUT TRUNCATED AT 64KB]"));
        assert_eq!(text.len(), MAX_BYTES - 4 + "[OUTPUT TRUNCATED AT 64KB]".len());
        assert!(capture(&letters(20_000, &[]), 16 << 10).0.ends_with("\n[OUTPUT TRUNCATED AT 16KB]"));
        // Nothing may be kept: the step reports that once, not every hook.
        assert_eq!(capture(b"abc", 0), (String::new(), true));
    }

    #[test]
    fn a_secret_that_the_cut_goes_through_is_not_shown() {
        let masker = Masker::new([("MY_TOKEN", "hunter2-hunter2-hunter2")]);
        for secret_offset in 1..23 {
            let text = "x ".repeat(10_000) + "hunter2-hunter2-hunter2 behind";
            let output = capture_output(text.as_bytes(), text.len() as u64, 20_000 + secret_offset, &masker);
            assert!(!output.kept_text.contains("hu"), "{}", &output.kept_text[19_990..]);
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_a_beginning_within_its_bounds(bytes in prop::collection::vec(any::<u8>(), 0..64), cap in 0_usize..64) {
            match find_cut(&bytes, bytes.len() as u64, cap) {
                None => prop_assert!(bytes.len() <= cap),
                Some(end) => prop_assert!(end <= cap && bytes.len() > cap && (cap < 4 || end > 0)),
            }
            capture_output(&bytes, bytes.len() as u64, cap, &Masker::new([]));
        }
    }
}
