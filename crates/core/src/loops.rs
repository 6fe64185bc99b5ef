//! Whether two outputs of an agent say the same again.
//!
//! What changes by itself (times, durations, ids, hashes, whitespace) is taken out first; then the texts are equal, or so and
//! so many thousandths of their words are the same in the same order. Aligning goes from what is certain to what is not:
//! equal beginnings and ends, lines that are rare in both, words that are, and only in the small gaps in between every
//! possibility. In a large gap without anything rare, words count in whatever order. So two outputs of a megabyte take
//! milliseconds, whatever is in them.
//!
//! Deciding that a run goes in circles (which outputs are compared, whether anything moved) is not done here: a review's
//! fixers are watched in [`crate::review`].

mod normal;

use alloc::{vec, vec::Vec};
use core::ops::Range;

pub use normal::normalised;

/// From so many thousandths on two outputs count as the same.
pub const SIMILAR: u16 = 900;
/// What occurs so often or less is rare.
const RARE: usize = 8;
/// Gaps up to so many pairs of words are compared exactly, larger ones by which words they share.
const EXACT: usize = 4_096;

/// How alike two outputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// Word by word, once normalised.
    Equal,
    /// At least [`SIMILAR`] thousandths of the words.
    Similar {
        permille: u16,
    },
    Different {
        permille: u16,
    },
}

impl Sameness {
    /// Nothing new was said.
    pub fn repeats(self) -> bool {
        !matches!(self, Sameness::Different { .. })
    }
}

pub fn similar_outputs(one: &str, other: &str) -> Sameness {
    let (one, other) = (normalised(one), normalised(other));
    if one == other {
        return Sameness::Equal;
    }
    let (one, other) = (Text::of(&one), Text::of(&other));
    let all = one.words.len() + other.words.len();
    let most = one.words.len().min(other.words.len());
    // Lengths alone may rule it out.
    let shared = if permille(most, all) < SIMILAR { most } else { one.shares_with(&other) };
    match permille(shared, all) {
        permille @ SIMILAR.. => Sameness::Similar { permille },
        permille => Sameness::Different { permille },
    }
}

/// Twice what is shared, of all; never more than 999, since the texts are not equal.
fn permille(shared: usize, all: usize) -> u16 {
    (2000 * shared).checked_div(all).and_then(|permille| u16::try_from(permille).ok()).unwrap_or(0).min(999)
}

/// A normalised text as numbers: equal words are equal numbers (and of a million pairs of different ones hardly any).
struct Text {
    words: Vec<u32>,
    /// One a line, with where its words are.
    lines: Vec<u32>,
    ends: Vec<usize>,
}

impl Text {
    fn of(text: &str) -> Text {
        let mut parsed = Text { words: Vec::new(), lines: Vec::new(), ends: Vec::new() };
        for line in text.lines() {
            let start = parsed.words.len();
            parsed.words.extend(line.split(' ').map(|word| number(word.as_bytes())));
            let line = parsed.words[start..].iter().fold(SEED, |sum, word| mix(sum, u64::from(*word)));
            parsed.lines.push(short(line));
            parsed.ends.push(parsed.words.len());
        }
        parsed
    }

    /// The words of some lines.
    fn words(&self, lines: Range<usize>) -> &[u32] {
        let at = |line: usize| line.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[at(lines.start)..at(lines.end)]
    }

    fn shares_with(&self, other: &Text) -> usize {
        let mut shared = 0;
        for part in align(&self.lines, &other.lines) {
            let (one, two) = (self.words(part.one.clone()), other.words(part.two.clone()));
            shared += if part.equal { one.len() } else { shared_words(one, two) };
        }
        shared
    }
}

/// Words of two gaps that are the same in the same order.
fn shared_words(one: &[u32], two: &[u32]) -> usize {
    let mut shared = 0;
    for part in align(one, two) {
        let (one, two) = (&one[part.one.clone()], &two[part.two.clone()]);
        shared += match part.equal {
            true => one.len(),
            false if one.len() * two.len() <= EXACT => longest_common(one, two),
            false => in_both(one, two),
        };
    }
    shared
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// The upper half is the better mixed one.
fn short(sum: u64) -> u32 {
    (sum >> 32) as u32
}

fn number(word: &[u8]) -> u32 {
    let (eights, rest) = word.as_chunks::<8>();
    let sum = eights.iter().fold(SEED ^ word.len() as u64, |sum, eight| mix(sum, u64::from_le_bytes(*eight)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    short(mix(sum, u64::from_le_bytes(last)))
}

/// A stretch of both sequences: equal, or still to be looked at.
struct Part {
    one: Range<usize>,
    two: Range<usize>,
    equal: bool,
}

/// Splits two sequences at what is certainly the same: beginning, end, and rare items (the longest row of them that is in
/// order), each as far as its neighbours are equal too.
fn align(one: &[u32], two: &[u32]) -> Vec<Part> {
    let prefix = one.iter().zip(two).take_while(|(a, b)| a == b).count();
    let (one_rest, two_rest) = (&one[prefix..], &two[prefix..]);
    let suffix = one_rest.iter().rev().zip(two_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (one_end, two_end) = (one.len() - suffix, two.len() - suffix);

    let mut parts = vec![Part { one: 0..prefix, two: 0..prefix, equal: true }];
    let (mut i, mut j) = (prefix, prefix);
    for (a, b) in in_order(&rare_in_both(&one[prefix..one_end], &two[prefix..two_end])) {
        let (a, b) = (a + prefix, b + prefix);
        // It may already be part of the stretch before.
        if a < i || b < j {
            continue;
        }
        let back = (1..=(a - i).min(b - j)).take_while(|step| one[a - step] == two[b - step]).count();
        let ahead = one[a..one_end].iter().zip(&two[b..two_end]).take_while(|(a, b)| a == b).count();
        parts.push(Part { one: i..a - back, two: j..b - back, equal: false });
        parts.push(Part { one: a - back..a + ahead, two: b - back..b + ahead, equal: true });
        (i, j) = (a + ahead, b + ahead);
    }
    parts.push(Part { one: i..one_end, two: j..two_end, equal: false });
    parts.push(Part { one: one_end..one.len(), two: two_end..two.len(), equal: true });
    parts
}

/// Pairs of places of items that are rare and occur equally often in both (the first with the first, and so on), by their
/// place in the first.
fn rare_in_both(one: &[u32], two: &[u32]) -> Vec<(usize, usize)> {
    let (one, two) = (sorted(one), sorted(two));
    let mut others = groups(&two).peekable();
    let mut pairs = Vec::new();
    for group in groups(&one) {
        let item = short(group[0]);
        while others.next_if(|other| short(other[0]) < item).is_some() {}
        let Some(other) = others.next_if(|other| short(other[0]) == item) else { continue };
        if group.len() == other.len() && group.len() <= RARE {
            pairs.extend(group.iter().zip(other).map(|(a, b)| (place(*a), place(*b))));
        }
    }
    pairs.sort_unstable();
    pairs
}

fn groups(sorted: &[u64]) -> impl Iterator<Item = &[u64]> {
    sorted.chunk_by(|one, next| short(*one) == short(*next))
}

/// Item and place in one number, sorted: several times as fast as pairs of them.
fn sorted(items: &[u32]) -> Vec<u64> {
    let mut sorted: Vec<u64> =
        items.iter().zip(0..).map(|(item, at): (_, u64)| u64::from(*item) << 32 | at).collect();
    sorted.sort_unstable();
    sorted
}

fn place(item: u64) -> usize {
    item as u32 as usize
}

/// The longest row of pairs that goes up on both sides.
fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For every length the row with the smallest end; with each pair the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, b)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *b);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut row = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        row.push(pairs[index]);
        next = before[index];
    }
    row.reverse();
    row
}

/// Length of the longest common subsequence; takes time in the product of the lengths.
fn longest_common(one: &[u32], two: &[u32]) -> usize {
    let mut row = vec![0; two.len() + 1];
    for a in one {
        let mut diagonal = 0;
        for (index, b) in two.iter().enumerate() {
            let above = row[index + 1];
            row[index + 1] = if a == b { diagonal + 1 } else { above.max(row[index]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// How many words two gaps share in whatever order: never less than in order.
fn in_both(one: &[u32], two: &[u32]) -> usize {
    let (mut one, mut two) = (one.to_vec(), two.to_vec());
    one.sort_unstable();
    two.sort_unstable();
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < one.len() && j < two.len() {
        match one[i].cmp(&two[j]) {
            core::cmp::Ordering::Less => i += 1,
            core::cmp::Ordering::Greater => j += 1,
            core::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
        }
    }
    shared
}
