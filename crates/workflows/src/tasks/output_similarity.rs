//! Compares two outputs of an agent to detect repetition.
//!
//! Volatile values (times, durations, ids, hashes, white space) are replaced first; then the texts are equal, or a number of
//! thousandths of their words is the same in the same order. The alignment goes from what is certain to what is not: equal
//! beginnings and ends, lines that are rare in both, words that are rare in both, and an exact comparison only in the small
//! gaps in between. In a large gap without anything rare, words count in any order. So the time never grows with the square
//! of the length, for any content.
//!
//! This module does not decide whether a run makes no progress (which outputs are compared, whether anything changed):
//! [`crate::review`] does this for fixers.

mod normalize;

use alloc::{vec, vec::Vec};
use core::ops::Range;

pub use normalize::normalize_output;

/// From so many thousandths on two outputs count as the same.
pub const SIMILAR_PERMILLE: u16 = 900;
/// The most occurrences of an item that counts as rare.
const MAX_RARE_COUNT: usize = 8;
/// Gaps with up to so many pairs of words are compared exactly, larger ones by the words they share.
const MAX_EXACT_PAIRS: usize = 4_096;

/// How similar two outputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSimilarity {
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

impl OutputSimilarity {
    /// Whether the output says nothing new.
    pub fn is_repetition(self) -> bool {
        !matches!(self, OutputSimilarity::Different { .. })
    }
}

pub fn compare_outputs(left: &str, right: &str) -> OutputSimilarity {
    // Equality is checked on the normalized texts, so a new timestamp alone is no new output.
    let (left, right) = (normalize_output(left), normalize_output(right));
    if left == right {
        return OutputSimilarity::Equal;
    }
    let (left, right) = (HashedText::from_text(&left), HashedText::from_text(&right));
    let total_words = left.word_hashes.len() + right.word_hashes.len();
    let max_shared = left.word_hashes.len().min(right.word_hashes.len());
    // If the lengths differ too much, the alignment cannot reach the threshold and is skipped.
    let shared = if shared_permille(max_shared, total_words) < SIMILAR_PERMILLE {
        max_shared
    } else {
        left.count_shared_words(&right)
    };
    match shared_permille(shared, total_words) {
        permille @ SIMILAR_PERMILLE.. => OutputSimilarity::Similar { permille },
        permille => OutputSimilarity::Different { permille },
    }
}

/// Returns twice the shared words in thousandths of all words; never more than 999, since the texts are not equal.
fn shared_permille(shared_words: usize, total_words: usize) -> u16 {
    (2000 * shared_words)
        .checked_div(total_words)
        .and_then(|permille| u16::try_from(permille).ok())
        .unwrap_or(0)
        .min(999)
}

/// A normalized text as hashes: equal words have equal hashes, and different ones almost never do.
struct HashedText {
    word_hashes: Vec<u32>,
    /// One hash for each line, and the end of its words.
    line_hashes: Vec<u32>,
    line_ends: Vec<usize>,
}

impl HashedText {
    fn from_text(normalized: &str) -> HashedText {
        let mut hashed = HashedText { word_hashes: Vec::new(), line_hashes: Vec::new(), line_ends: Vec::new() };
        for line in normalized.lines() {
            let line_start = hashed.word_hashes.len();
            hashed.word_hashes.extend(line.split(' ').map(|word| hash_word(word.as_bytes())));
            let line_hash =
                hashed.word_hashes[line_start..].iter().fold(HASH_SEED, |sum, word| mix_hash(sum, u64::from(*word)));
            hashed.line_hashes.push(upper_half(line_hash));
            hashed.line_ends.push(hashed.word_hashes.len());
        }
        hashed
    }

    /// Returns the words of some lines.
    fn words_of_lines(&self, line_range: Range<usize>) -> &[u32] {
        let end_before = |line_index: usize| line_index.checked_sub(1).map_or(0, |previous| self.line_ends[previous]);
        &self.word_hashes[end_before(line_range.start)..end_before(line_range.end)]
    }

    fn count_shared_words(&self, other_text: &HashedText) -> usize {
        let mut shared = 0;
        for part in align_sequences(&self.line_hashes, &other_text.line_hashes) {
            let (left, right) =
                (self.words_of_lines(part.left_range.clone()), other_text.words_of_lines(part.right_range.clone()));
            // Lines that differ may still share most of their words.
            shared += if part.is_equal { left.len() } else { shared_words(left, right) };
        }
        shared
    }
}

/// Counts the words of two gaps that are the same in the same order.
fn shared_words(left: &[u32], right: &[u32]) -> usize {
    let mut shared = 0;
    for part in align_sequences(left, right) {
        let (left, right) = (&left[part.left_range.clone()], &right[part.right_range.clone()]);
        shared += match part.is_equal {
            true => left.len(),
            // The exact comparison is quadratic, so only small gaps can afford it.
            false if left.len() * right.len() <= MAX_EXACT_PAIRS => longest_common_length(left, right),
            false => count_in_both(left, right),
        };
    }
    shared
}

const HASH_SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn mix_hash(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Returns the upper half of a hash, which is better mixed than the lower one.
fn upper_half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn hash_word(word: &[u8]) -> u32 {
    let (chunks, remainder) = word.as_chunks::<8>();
    // The length is part of the hash: the last chunk is padded with zeros.
    let hash =
        chunks.iter().fold(HASH_SEED ^ word.len() as u64, |hash, chunk| mix_hash(hash, u64::from_le_bytes(*chunk)));
    let mut padded = [0; 8];
    padded[..remainder.len()].copy_from_slice(remainder);
    upper_half(mix_hash(hash, u64::from_le_bytes(padded)))
}

/// A range of both sequences: equal, or still to be compared.
struct AlignedPart {
    left_range: Range<usize>,
    right_range: Range<usize>,
    is_equal: bool,
}

/// Splits two sequences at what is certainly the same: beginning, end, and rare items (the longest increasing row of them),
/// each extended as far as the neighbours are equal, too.
fn align_sequences(left: &[u32], right: &[u32]) -> Vec<AlignedPart> {
    let prefix = left.iter().zip(right).take_while(|(left_item, right_item)| left_item == right_item).count();
    // The suffix must not overlap the prefix.
    let (left_rest, right_rest) = (&left[prefix..], &right[prefix..]);
    let suffix = left_rest
        .iter()
        .rev()
        .zip(right_rest.iter().rev())
        .take_while(|(left_item, right_item)| left_item == right_item)
        .count();
    let (left_end, right_end) = (left.len() - suffix, right.len() - suffix);

    let mut parts = vec![AlignedPart { left_range: 0..prefix, right_range: 0..prefix, is_equal: true }];
    let (mut left_next, mut right_next) = (prefix, prefix);
    for (left_index, right_index) in
        longest_increasing(&pair_rare_items(&left[prefix..left_end], &right[prefix..right_end]))
    {
        let (left_index, right_index) = (left_index + prefix, right_index + prefix);
        // The item may already be part of the range before.
        if left_index < left_next || right_index < right_next {
            continue;
        }
        let equal_before = (1..=(left_index - left_next).min(right_index - right_next))
            .take_while(|step| left[left_index - step] == right[right_index - step])
            .count();
        let equal_after = left[left_index..left_end]
            .iter()
            .zip(&right[right_index..right_end])
            .take_while(|(left_item, right_item)| left_item == right_item)
            .count();
        parts.push(AlignedPart {
            left_range: left_next..left_index - equal_before,
            right_range: right_next..right_index - equal_before,
            is_equal: false,
        });
        parts.push(AlignedPart {
            left_range: left_index - equal_before..left_index + equal_after,
            right_range: right_index - equal_before..right_index + equal_after,
            is_equal: true,
        });
        (left_next, right_next) = (left_index + equal_after, right_index + equal_after);
    }
    parts.push(AlignedPart { left_range: left_next..left_end, right_range: right_next..right_end, is_equal: false });
    parts.push(AlignedPart { left_range: left_end..left.len(), right_range: right_end..right.len(), is_equal: true });
    parts
}

/// Pairs the positions of items that are rare and occur equally often in both (the first with the first, and so on), sorted
/// by their position in the first sequence.
fn pair_rare_items(left: &[u32], right: &[u32]) -> Vec<(usize, usize)> {
    let (left, right) = (sort_by_item(left), sort_by_item(right));
    let mut right_groups = group_equal(&right).peekable();
    let mut pairs = Vec::new();
    for left_group in group_equal(&left) {
        let item = upper_half(left_group[0]);
        // Both sides are sorted by item, so one pass over each is enough.
        while right_groups.next_if(|right_group| upper_half(right_group[0]) < item).is_some() {}
        let Some(right_group) = right_groups.next_if(|right_group| upper_half(right_group[0]) == item) else {
            continue;
        };
        if left_group.len() == right_group.len() && left_group.len() <= MAX_RARE_COUNT {
            pairs.extend(
                left_group
                    .iter()
                    .zip(right_group)
                    .map(|(left_item, right_item)| (item_position(*left_item), item_position(*right_item))),
            );
        }
    }
    pairs.sort_unstable();
    pairs
}

fn group_equal(sorted_items: &[u64]) -> impl Iterator<Item = &[u64]> {
    sorted_items.chunk_by(|item, next_item| upper_half(*item) == upper_half(*next_item))
}

/// Packs item and position into one number and sorts the numbers, so that a comparison is one operation.
fn sort_by_item(items: &[u32]) -> Vec<u64> {
    let mut sorted: Vec<u64> =
        items.iter().zip(0..).map(|(item, position): (_, u64)| u64::from(*item) << 32 | position).collect();
    sorted.sort_unstable();
    sorted
}

fn item_position(item: u64) -> usize {
    item as u32 as usize
}

/// Returns the longest row of pairs that increases on both sides.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For every length the index at which the best row of it ends, and for each pair its predecessor: patience sorting.
    let mut smallest_ends: Vec<usize> = Vec::new();
    let mut predecessors: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, right_index)) in pairs.iter().enumerate() {
        let length = smallest_ends.partition_point(|end| pairs[*end].1 < *right_index);
        predecessors.push(length.checked_sub(1).map(|shorter| smallest_ends[shorter]));
        match smallest_ends.get_mut(length) {
            Some(end) => *end = index,
            None => smallest_ends.push(index),
        }
    }
    let mut increasing = Vec::with_capacity(smallest_ends.len());
    let mut next_index = smallest_ends.last().copied();
    // The row is read backwards from its end.
    while let Some(index) = next_index {
        increasing.push(pairs[index]);
        next_index = predecessors[index];
    }
    increasing.reverse();
    increasing
}

/// Returns the length of the longest common subsequence, in time proportional to the product of the lengths.
fn longest_common_length(left: &[u32], right: &[u32]) -> usize {
    let mut lengths = vec![0; right.len() + 1];
    for left_item in left {
        // One row is enough: `diagonal` keeps the value that the row has just overwritten.
        let mut diagonal = 0;
        for (index, right_item) in right.iter().enumerate() {
            let value_above = lengths[index + 1];
            lengths[index + 1] = if left_item == right_item { diagonal + 1 } else { value_above.max(lengths[index]) };
            diagonal = value_above;
        }
    }
    lengths.last().copied().unwrap_or(0)
}

/// Counts the words that two gaps share in any order: never fewer than in order.
fn count_in_both(left: &[u32], right: &[u32]) -> usize {
    let (mut left, mut right) = (left.to_vec(), right.to_vec());
    left.sort_unstable();
    right.sort_unstable();
    let (mut left_index, mut right_index, mut shared) = (0, 0, 0);
    while left_index < left.len() && right_index < right.len() {
        match left[left_index].cmp(&right[right_index]) {
            core::cmp::Ordering::Less => left_index += 1,
            core::cmp::Ordering::Greater => right_index += 1,
            core::cmp::Ordering::Equal => {
                (left_index, right_index, shared) = (left_index + 1, right_index + 1, shared + 1)
            }
        }
    }
    shared
}
