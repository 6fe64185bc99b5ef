//! Decides how much of an output is kept: where it is cut, and what must not be split by that.

use crate::mask::Masker;

/// An output is cut at a line end if there is one this close before the limit.
const NEAR: usize = 1 << 10;
/// This much after a cut is inspected, so that no secret shows because the cut goes through it.
const BEHIND: usize = 16 << 10;

/// What a command printed on one stream, as far as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// With the mark of a cut at its end.
    pub text: String,
    pub cut: bool,
    /// Everything that was printed.
    pub bytes: u64,
}

/// Keeps at most `max_bytes` of an output; `output_start` is the beginning of its `total_bytes`.
pub(super) fn said(bytes: &[u8], total: u64, cap: usize, masker: &Masker) -> Said {
    let Some(end) = cut_at(bytes, total, cap) else {
        let text = masker.mask(&String::from_utf8_lossy(bytes)).into_owned();
        return Said { text, cut: false, bytes: total };
    };
    let masked = |end: usize| {
        let kept = bytes.get(..end).unwrap_or(bytes);
        masker.mask(&String::from_utf8_lossy(kept)).into_owned()
    };
    // A secret is recognized only with its end in sight. Only what is the same with and without that end is shown.
    let mut text = common(masked(end), &masked(whole(bytes, bytes.len().min(end + BEHIND))));
    // A limit of zero means that the step is full, which was reported once already.
    if cap > 0 {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[OUTPUT TRUNCATED AT {}]", size(cap)));
    }
    Said { text, cut: true, bytes: total }
}

fn size(cap: usize) -> String {
    if cap.is_multiple_of(1 << 10) { format!("{}KB", cap >> 10) } else { format!("{cap} BYTES") }
}

/// Returns where an output is cut, or `None` if all of it is kept.
fn cut_at(bytes: &[u8], total: u64, cap: usize) -> Option<usize> {
    if total <= cap as u64 {
        return None;
    }
    let cap = cap.min(bytes.len());
    // Cutting at a line end keeps the kept text readable.
    let near = bytes.get(cap.saturating_sub(NEAR)..cap).unwrap_or_default();
    match near.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => Some(cap - near.len() + at + 1),
        None => Some(whole(bytes, cap)),
    }
}

/// Returns the position, or the start of the character that a cut there would split.
fn whole(bytes: &[u8], at: usize) -> usize {
    // A UTF-8 character has at most three bytes after its first one.
    let first = (at.saturating_sub(3)..at)
        .rev()
        .find(|index| bytes.get(*index).is_some_and(|byte| byte & 0xc0 != 0x80));
    let Some(first) = first else { return at };
    let length = match bytes.get(first) {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    if first + length > at { first } else { at }
}

/// Returns the common beginning of two texts.
fn common(mut one: String, other: &str) -> String {
    let shared = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    one.truncate(shared.unwrap_or(one.len().min(other.len())));
    one
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAP: usize = 65_536;

    fn cut(bytes: &[u8]) -> Option<usize> {
        cut_at(bytes, bytes.len() as u64, CAP)
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
        assert_eq!(cut(&letters(65_535, &[])), None);
        assert_eq!(cut(&letters(65_536, &[])), None);
        assert_eq!(cut(&letters(65_537, &[])), Some(65_536));
        assert_eq!(cut(b""), None);
    }

    #[test]
    fn a_line_s_end_in_the_last_kibibyte_is_where_it_is_cut() {
        for (ends, at) in [
            // The last byte that is kept.
            (vec![CAP - 1], CAP),
            // The first byte that is not kept.
            (vec![CAP], CAP),
            (vec![CAP - 1024], CAP - 1023),
            (vec![CAP - 1025], CAP),
            (vec![CAP - 900, CAP - 800], CAP - 799),
        ] {
            assert_eq!(cut(&letters(CAP + 10, &ends)), Some(at), "{ends:?}");
        }
        // The limit may be smaller than the window.
        assert_eq!(cut_at(b"ab\ncd", 5, 4), Some(3));
        assert_eq!(cut_at(b"abcd", 4, 3), Some(3));
        assert_eq!(cut_at(b"abcd", 4, 0), Some(0));
    }

    #[test]
    fn no_character_is_torn_apart() {
        for (character, torn) in [("ä", 1), ("€", 1), ("€", 2), ("😀", 1), ("😀", 2), ("😀", 3)] {
            let text = "x".repeat(CAP - torn) + character + "behind";
            assert_eq!(cut(text.as_bytes()), Some(CAP - torn), "{character} {torn}");
            assert!(
                !said(text.as_bytes(), text.len() as u64, CAP, &Masker::new([])).text.contains('\u{fffd}')
            );
        }
        let text = "x".repeat(CAP - 2) + "ä" + "behind";
        assert_eq!(cut(text.as_bytes()), Some(CAP));
        // Bytes that are not text are cut exactly at the limit.
        assert_eq!(cut(&[0x80; CAP + 9]), Some(CAP));
        assert_eq!(cut(&[0xff; CAP + 9]), Some(CAP));
    }

    #[test]
    fn a_cut_is_marked_and_nothing_else_is() {
        let masker = Masker::new([]);
        let shown = |bytes: &[u8], cap: usize| {
            let said = said(bytes, bytes.len() as u64, cap, &masker);
            (said.text, said.cut)
        };
        assert_eq!(shown(&letters(CAP, &[]), CAP), ("x".repeat(CAP), false));
        assert_eq!(
            shown(&letters(CAP + 1, &[]), CAP),
            ("x".repeat(CAP) + "\n[OUTPUT TRUNCATED AT 64KB]", true)
        );
        let (text, _) = shown(&letters(CAP + 1, &[CAP - 5]), CAP);
        assert!(text.ends_with("xx\n[OUTPUT TRUNCATED AT 64KB]"));
        assert_eq!(text.len(), CAP - 4 + "[OUTPUT TRUNCATED AT 64KB]".len());
        assert!(shown(&letters(20_000, &[]), 16 << 10).0.ends_with("\n[OUTPUT TRUNCATED AT 16KB]"));
        // Nothing may be kept: the step reports that once, not every hook.
        assert_eq!(shown(b"abc", 0), (String::new(), true));
    }

    #[test]
    fn a_secret_that_the_cut_goes_through_is_not_shown() {
        let masker = Masker::new([("MY_TOKEN", "hunter2-hunter2-hunter2")]);
        for at in 1..23 {
            let text = "x ".repeat(10_000) + "hunter2-hunter2-hunter2 behind";
            let said = said(text.as_bytes(), text.len() as u64, 20_000 + at, &masker);
            assert!(!said.text.contains("hu"), "{}", &said.text[19_990..]);
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_a_beginning_within_its_bounds(bytes in prop::collection::vec(any::<u8>(), 0..64), cap in 0_usize..64) {
            match cut_at(&bytes, bytes.len() as u64, cap) {
                None => prop_assert!(bytes.len() <= cap),
                Some(end) => prop_assert!(end <= cap && bytes.len() > cap && (cap < 4 || end > 0)),
            }
            said(&bytes, bytes.len() as u64, cap, &Masker::new([]));
        }
    }
}
