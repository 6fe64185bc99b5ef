//! Compares two outputs of an agent to detect repetition.
//!
//! Volatile values (times, durations, ids, hashes, white space) are replaced first; then the texts are equal, or a number of
//! thousandths of their words is the same in the same order. The alignment goes from what is certain to what is not: equal
//! beginnings and ends, lines that are rare in both, words that are rare in both, and an exact comparison only in the small
//! gaps in between. In a large gap without anything rare, words count in any order. So comparing two outputs of a megabyte
//! takes milliseconds for any content.
//!
//! This module does not decide whether a run makes no progress (which outputs are compared, whether anything changed):
//! [`crate::review`] does this for fixers.

mod normal;

use alloc::{vec, vec::Vec};
use core::ops::Range;

pub use normal::normalised;

/// From so many thousandths on two outputs count as the same.
pub const SIMILAR: u16 = 900;
/// The most occurrences of an item that counts as rare.
const RARE: usize = 8;
/// Gaps with up to so many pairs of words are compared exactly, larger ones by the words they share.
const EXACT: usize = 4_096;

/// How similar two outputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// Equal word by word after normalizing.
    Equal,
    /// At least [`SIMILAR_PERMILLE`] thousandths of the words are the same.
    Similar {
        permille: u16,
    },
    Different {
        permille: u16,
    },
}

impl Sameness {
    /// Whether the output says nothing new.
    pub fn repeats(self) -> bool {
        !matches!(self, Sameness::Different { .. })
    }
}

pub fn similar_outputs(one: &str, other: &str) -> Sameness {
    // Equality is checked on the normalized texts, so a new timestamp alone is no new output.
    let (one, other) = (normalised(one), normalised(other));
    if one == other {
        return Sameness::Equal;
    }
    let (one, other) = (Text::of(&one), Text::of(&other));
    let all = one.words.len() + other.words.len();
    let most = one.words.len().min(other.words.len());
    // If the lengths differ too much, the alignment cannot reach the threshold and is skipped.
    let shared = if permille(most, all) < SIMILAR { most } else { one.shares_with(&other) };
    match permille(shared, all) {
        permille @ SIMILAR.. => Sameness::Similar { permille },
        permille => Sameness::Different { permille },
    }
}

/// Returns twice the shared words in thousandths of all words; never more than 999, since the texts are not equal.
fn permille(shared: usize, all: usize) -> u16 {
    (2000 * shared).checked_div(all).and_then(|permille| u16::try_from(permille).ok()).unwrap_or(0).min(999)
}

/// A normalized text as hashes: equal words have equal hashes, and different ones almost never do.
struct Text {
    words: Vec<u32>,
    /// One hash for each line, and the end of its words.
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

    /// Returns the words of some lines.
    fn words(&self, lines: Range<usize>) -> &[u32] {
        let at = |line: usize| line.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[at(lines.start)..at(lines.end)]
    }

    fn shares_with(&self, other: &Text) -> usize {
        let mut shared = 0;
        for part in align(&self.lines, &other.lines) {
            let (one, two) = (self.words(part.one.clone()), other.words(part.two.clone()));
            // Lines that differ may still share most of their words.
            shared += if part.equal { one.len() } else { shared_words(one, two) };
        }
        shared
    }
}

/// Counts the words of two gaps that are the same in the same order.
fn shared_words(one: &[u32], two: &[u32]) -> usize {
    let mut shared = 0;
    for part in align(one, two) {
        let (one, two) = (&one[part.one.clone()], &two[part.two.clone()]);
        shared += match part.equal {
            true => one.len(),
            // The exact comparison is quadratic, so only small gaps can afford it.
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

/// Returns the upper half of a hash, which is better mixed than the lower one.
fn short(sum: u64) -> u32 {
    (sum >> 32) as u32
}

fn number(word: &[u8]) -> u32 {
    let (eights, rest) = word.as_chunks::<8>();
    // The length is part of the hash: the last chunk is padded with zeros.
    let sum = eights.iter().fold(SEED ^ word.len() as u64, |sum, eight| mix(sum, u64::from_le_bytes(*eight)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    short(mix(sum, u64::from_le_bytes(last)))
}

/// A range of both sequences: equal, or still to be compared.
struct Part {
    one: Range<usize>,
    two: Range<usize>,
    equal: bool,
}

/// Splits two sequences at what is certainly the same: beginning, end, and rare items (the longest increasing row of them),
/// each extended as far as the neighbours are equal, too.
fn align(one: &[u32], two: &[u32]) -> Vec<Part> {
    let prefix = one.iter().zip(two).take_while(|(a, b)| a == b).count();
    // The suffix must not overlap the prefix.
    let (one_rest, two_rest) = (&one[prefix..], &two[prefix..]);
    let suffix = one_rest.iter().rev().zip(two_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (one_end, two_end) = (one.len() - suffix, two.len() - suffix);

    let mut parts = vec![Part { one: 0..prefix, two: 0..prefix, equal: true }];
    let (mut i, mut j) = (prefix, prefix);
    for (a, b) in in_order(&rare_in_both(&one[prefix..one_end], &two[prefix..two_end])) {
        let (a, b) = (a + prefix, b + prefix);
        // The item may already be part of the range before.
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

/// Pairs the positions of items that are rare and occur equally often in both (the first with the first, and so on), sorted
/// by their position in the first sequence.
fn rare_in_both(one: &[u32], two: &[u32]) -> Vec<(usize, usize)> {
    let (one, two) = (sorted(one), sorted(two));
    let mut others = groups(&two).peekable();
    let mut pairs = Vec::new();
    for group in groups(&one) {
        let item = short(group[0]);
        // Both sides are sorted by item, so one pass over each is enough.
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

/// Packs item and position into one number and sorts them: several times faster than sorting pairs.
fn sorted(items: &[u32]) -> Vec<u64> {
    let mut sorted: Vec<u64> =
        items.iter().zip(0..).map(|(item, at): (_, u64)| u64::from(*item) << 32 | at).collect();
    sorted.sort_unstable();
    sorted
}

fn place(item: u64) -> usize {
    item as u32 as usize
}

/// Returns the longest row of pairs that increases on both sides.
fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For every length the index at which the best row of it ends, and for each pair its predecessor: patience sorting.
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
    // The row is read backwards from its end.
    while let Some(index) = next {
        row.push(pairs[index]);
        next = before[index];
    }
    row.reverse();
    row
}

/// Returns the length of the longest common subsequence, in time proportional to the product of the lengths.
fn longest_common(one: &[u32], two: &[u32]) -> usize {
    let mut row = vec![0; two.len() + 1];
    for a in one {
        // One row is enough: `diagonal` keeps the value that the row has just overwritten.
        let mut diagonal = 0;
        for (index, b) in two.iter().enumerate() {
            let above = row[index + 1];
            row[index + 1] = if a == b { diagonal + 1 } else { above.max(row[index]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Counts the words that two gaps share in any order: never fewer than in order.
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
