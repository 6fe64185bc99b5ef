//! Whether two outputs of an agent are the same: close and distant texts, reordered texts, short and very long ones.

use proptest::prelude::*;
use tribunal_core::loops::{SIMILAR, Sameness, normalised, similar_outputs};

/// Returns `word_count` words, none of which occurs twice.
fn text(words: usize) -> Vec<String> {
    (0..words).map(|number| format!("word-{}-of{}", number, number * 7 % 13)).collect()
}

/// Joins words into lines of ten.
fn lines(words: &[String]) -> String {
    words.chunks(10).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n")
}

fn permille(one: &str, other: &str) -> u16 {
    match similar_outputs(one, other) {
        Sameness::Equal => 1000,
        Sameness::Similar { permille } | Sameness::Different { permille } => permille,
    }
}

#[test]
fn only_the_clock_moved() {
    let first = "2026-11-15T01:29:25Z run 550e8400-e29b-41d4-a716-446655440000\nTests: 3 failed in 1.21s\n";
    let second =
        "2026-11-15T01:31:02Z run 0b0e8400-e29b-41d4-a716-446655440001\n\nTests:  3 failed in 980ms\n";
    assert_eq!(similar_outputs(first, second), Sameness::Equal);
    assert_eq!(normalised(first), normalised(second));
    let third = second.replace("3 failed", "2 failed");
    assert_ne!(normalised(&third), normalised(second));
    assert_ne!(similar_outputs(second, &third), Sameness::Equal);
}

#[test]
fn empty_outputs_are_equal_and_an_empty_one_is_like_no_other() {
    assert_eq!(similar_outputs("", " \n\n"), Sameness::Equal);
    assert_eq!(similar_outputs("", "something"), Sameness::Different { permille: 0 });
}

#[test]
fn a_tenth_of_the_words_is_the_border() {
    let one = text(1000);
    for (changed, repeats) in [(50, true), (99, true), (101, false), (300, false)] {
        let mut other = one.clone();
        // The changes are spread evenly, so that hardly any line stays the same.
        for index in 0..changed {
            other[index * (1000 / changed)] = format!("changed{index}x");
        }
        let sameness = similar_outputs(&lines(&one), &lines(&other));
        assert_eq!(sameness.repeats(), repeats, "{changed} of 1000 words: {sameness:?}");
        assert_eq!(permille(&lines(&one), &lines(&other)), 1000 - changed as u16);
    }
}

#[test]
fn other_line_breaks_change_nothing_much() {
    let words = text(500);
    let narrow = words.chunks(3).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n");
    assert_eq!(permille(&lines(&words), &narrow), 999);
}

#[test]
fn different_answers_are_different() {
    let one =
        "The parser fails on empty input because the loop reads one byte too many. I changed the bound.";
    let other =
        "All tests pass now. The remaining work is documentation, which I will write in the next step.";
    assert!(!similar_outputs(one, other).repeats());
}

/// A megabyte of the hardest input is compared: few different lines, few different words, no line breaks, reversed order.
#[test]
fn a_megabyte_of_anything_has_an_answer() {
    let repeated = "the same line again and again\n".repeat(35_000);
    let few_words = |step: usize| {
        (0..200_000).map(|number| ["a", "bb", "ccc"][(number * step / 7) % 3]).collect::<Vec<_>>().join(" ")
    };
    let shuffled: Vec<String> = text(80_000).into_iter().rev().collect();
    for (one, other) in [
        (repeated.clone(), format!("{repeated}one line more\n")),
        (few_words(3), few_words(5)),
        (lines(&text(80_000)), lines(&shuffled)),
        (text(80_000).join(" "), text(79_000).join(" ")),
    ] {
        assert!(one.len() > 300_000);
        permille(&one, &other);
    }
    assert!(!similar_outputs(&lines(&text(80_000)), &lines(&shuffled)).repeats(), "order counts");
}

/// Computes the similarity by the longest common subsequence, in quadratic time.
fn exact(one: &[String], other: &[String]) -> u16 {
    let mut table = vec![vec![0_usize; other.len() + 1]; one.len() + 1];
    for (i, a) in one.iter().enumerate() {
        for (j, b) in other.iter().enumerate() {
            table[i + 1][j + 1] = if a == b { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
        }
    }
    (2000 * table[one.len()][other.len()] / (one.len() + other.len()).max(1)) as u16
}

proptest! {
    #[test]
    fn near_the_border_it_agrees_with_the_textbook(
        seed in proptest::collection::vec(0_u32..400, 200..300),
        edits in proptest::collection::vec((0_usize..200, 0_u8..3, 0_u32..400), 0..40),
    ) {
        let one: Vec<String> = seed.iter().map(|number| format!("w{number}w")).collect();
        let mut other = one.clone();
        for (at, edit, word) in edits {
            let at = at % other.len();
            match edit {
                0 => { other.remove(at); }
                1 => other.insert(at, format!("w{word}w")),
                _ => other[at] = format!("w{word}w"),
            }
        }
        let (exact, found) = (exact(&one, &other), permille(&lines(&one), &lines(&other)));
        if exact < 1000 {
            prop_assert!(found.abs_diff(exact) <= 20, "exact {exact}, found {found}");
            if exact.abs_diff(SIMILAR) > 20 {
                prop_assert_eq!(similar_outputs(&lines(&one), &lines(&other)).repeats(), exact >= SIMILAR);
            }
        }
    }
}
