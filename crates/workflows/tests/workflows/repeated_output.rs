//! Whether two outputs of an agent are the same: close and distant texts, reordered texts, short and very long ones.

use proptest::prelude::*;
use tribunal_workflows::tasks::output_similarity::{
    OutputSimilarity, SIMILAR_PERMILLE, compare_outputs, normalize_output,
};

/// Returns `word_count` words, none of which occurs twice.
fn distinct_words(word_count: usize) -> Vec<String> {
    (0..word_count).map(|word_index| format!("word-{}-of{}", word_index, word_index * 7 % 13)).collect()
}

/// Joins words into lines of ten.
fn to_lines(words: &[String]) -> String {
    words.chunks(10).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n")
}

fn similarity_permille(first_text: &str, second_text: &str) -> u16 {
    match compare_outputs(first_text, second_text) {
        OutputSimilarity::Equal => 1000,
        OutputSimilarity::Similar { permille } | OutputSimilarity::Different { permille } => permille,
    }
}

#[test]
fn outputs_that_differ_only_in_times_and_ids_are_equal() {
    let first_output = "2026-11-15T01:29:25Z run 550e8400-e29b-41d4-a716-446655440000\nTests: 3 failed in 1.21s\n";
    let second_output = "2026-11-15T01:31:02Z run 0b0e8400-e29b-41d4-a716-446655440001\n\nTests:  3 failed in 980ms\n";
    assert_eq!(compare_outputs(first_output, second_output), OutputSimilarity::Equal);
    assert_eq!(normalize_output(first_output), normalize_output(second_output));
    let changed_output = second_output.replace("3 failed", "2 failed");
    assert_ne!(normalize_output(&changed_output), normalize_output(second_output));
    assert_ne!(compare_outputs(second_output, &changed_output), OutputSimilarity::Equal);
}

#[test]
fn empty_outputs_are_equal_and_differ_from_any_other() {
    assert_eq!(compare_outputs("", " \n\n"), OutputSimilarity::Equal);
    assert_eq!(compare_outputs("", "something"), OutputSimilarity::Different { permille: 0 });
}

#[test]
fn outputs_repeat_when_less_than_a_tenth_of_the_words_changed() {
    let first_words = distinct_words(1000);
    for (changed, repeats) in [(50, true), (99, true), (101, false), (300, false)] {
        let mut second_words = first_words.clone();
        // The changes are spread evenly, so that hardly any line stays the same.
        for index in 0..changed {
            second_words[index * (1000 / changed)] = format!("changed{index}x");
        }
        let sameness = compare_outputs(&to_lines(&first_words), &to_lines(&second_words));
        assert_eq!(sameness.is_repetition(), repeats, "{changed} of 1000 words: {sameness:?}");
        assert_eq!(similarity_permille(&to_lines(&first_words), &to_lines(&second_words)), 1000 - changed as u16);
    }
}

#[test]
fn other_line_breaks_hardly_change_the_similarity() {
    let words = distinct_words(500);
    let narrow_text = words.chunks(3).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n");
    assert_eq!(similarity_permille(&to_lines(&words), &narrow_text), 999);
}

#[test]
fn different_answers_are_different() {
    let first_text = "The parser fails on empty input because the loop reads one byte too many. I changed the bound.";
    let second_text = "All tests pass now. The remaining work is documentation, which I will write in the next step.";
    assert!(!compare_outputs(first_text, second_text).is_repetition());
}

/// A megabyte of the hardest input is compared: few different lines, few different words, no line breaks, reversed order.
#[test]
fn megabytes_of_hard_input_are_compared_in_time() {
    let repeated = "the same line again and again\n".repeat(35_000);
    let few_words = |stride: usize| {
        (0..200_000).map(|word_index| ["a", "bb", "ccc"][(word_index * stride / 7) % 3]).collect::<Vec<_>>().join(" ")
    };
    let shuffled: Vec<String> = distinct_words(80_000).into_iter().rev().collect();
    for (first_text, second_text) in [
        (repeated.clone(), format!("{repeated}one line more\n")),
        (few_words(3), few_words(5)),
        (to_lines(&distinct_words(80_000)), to_lines(&shuffled)),
        (distinct_words(80_000).join(" "), distinct_words(79_000).join(" ")),
    ] {
        assert!(first_text.len() > 300_000);
        similarity_permille(&first_text, &second_text);
    }
    assert!(!compare_outputs(&to_lines(&distinct_words(80_000)), &to_lines(&shuffled)).is_repetition(), "order counts");
}

/// Computes the similarity by the longest common subsequence, in quadratic time.
fn exact_permille(first_words: &[String], second_words: &[String]) -> u16 {
    let mut table = vec![vec![0_usize; second_words.len() + 1]; first_words.len() + 1];
    for (row, first_word) in first_words.iter().enumerate() {
        for (column, second_word) in second_words.iter().enumerate() {
            table[row + 1][column + 1] = if first_word == second_word {
                table[row][column] + 1
            } else {
                table[row][column + 1].max(table[row + 1][column])
            };
        }
    }
    (2000 * table[first_words.len()][second_words.len()] / (first_words.len() + second_words.len()).max(1)) as u16
}

proptest! {
    #[test]
    fn near_the_threshold_it_agrees_with_the_exact_calculation(
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
        let (exact, found) = (exact_permille(&one, &other), similarity_permille(&to_lines(&one), &to_lines(&other)));
        if exact < 1000 {
            prop_assert!(found.abs_diff(exact) <= 20, "exact {exact}, found {found}");
            if exact.abs_diff(SIMILAR_PERMILLE) > 20 {
                prop_assert_eq!(compare_outputs(&to_lines(&one), &to_lines(&other)).is_repetition(), exact >= SIMILAR_PERMILLE);
            }
        }
    }
}
