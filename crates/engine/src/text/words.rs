//! Words: which of them carry meaning, and when two are forms of one.
//!
//! The rules are for English only and need no dictionary: endings, a list of stop words, a list of words that change the
//! meaning of a sentence. Words with letters that are not ASCII keep their endings, so that they are compared literally.
//! [`crate::review::ground`] and [`crate::review::merge`] decide what is compared for which purpose.

use alloc::string::{String, ToString};

/// Words that say nothing about the topic of a text. Blanks on both sides make them searchable with [`is_in_list`].
const STOP_WORDS: &str = " a about again also although an and another are as at be because been being both but by \
    could did do does doing done for from get gets had has have having he her here his how however i if in into is it \
    its itself just like made make makes many me might much my of off on one or other our out over own per rather s \
    same say says she so some still such t than that the their them then there therefore these they thing this those \
    though through thus to too under up us very via was we were what when where whether which while who whom whose why \
    will with would yet you your ";

/// Words that change the meaning of a sentence when they are added, removed or replaced.
const MEANING_WORDS: &str = " above accept accepted after all allow allowed always any before below cannot decrease denied \
    deny disable disabled each enable enabled every except false first forbid forbidden increase last least less max \
    maximum may min minimum more most must neither never no none nor not off often on only optional or private public \
    rarely read reject rejected required shall should sometimes true under unless until without write ";

/// Whether a token is a plain word: letters, with apostrophes or hyphens in the middle.
pub fn is_plain_word(token: &str) -> bool {
    let mut chars = token.chars();
    // The first character excludes tokens such as `-x` and `'quoted`.
    chars.next().is_some_and(char::is_alphabetic)
        && token.chars().all(|character| character.is_alphabetic() || character == '\'' || character == '-')
}

pub fn is_stop_word(word: &str) -> bool {
    is_in_list(STOP_WORDS, word)
}

/// Whether the word is a negation: `not`, `never`, `don't`, …
pub fn is_negation(word: &str) -> bool {
    let word = word.to_lowercase();
    word.ends_with("n't")
        || ["not", "no", "never", "none", "nor", "neither", "without", "cannot", "unless", "except"]
            .contains(&word.as_str())
}

/// Whether a sentence may say something else with this word, or without it.
pub fn changes_meaning(word: &str) -> bool {
    is_negation(word) || is_in_list(MEANING_WORDS, word)
}

/// Whether a word is in a list whose words have blanks on both sides.
pub fn is_in_list(word_list: &str, word: &str) -> bool {
    let mut padded = String::with_capacity(word.len() + 2);
    padded.push(' ');
    padded.extend(word.chars().flat_map(char::to_lowercase));
    padded.push(' ');
    // Padding makes a substring search match whole words only; an empty word would match anywhere.
    padded.len() > 2 && word_list.contains(padded.as_str())
}

/// Whether one word is the opposite of the other: `known` and `unknown`, `stateful` and `stateless`.
pub fn are_opposites(left: &str, right: &str) -> bool {
    let is_negation = |base: &str, negated: &str| {
        // A wrong hit only makes grounding stricter, so the list may be generous.
        let prefixes = ["un", "in", "im", "ir", "il", "dis", "non", "non-", "de", "mis", "a"];
        prefixes.iter().any(|prefix| negated.strip_prefix(prefix) == Some(base))
            || base.strip_suffix("ful").is_some_and(|stem| negated.strip_suffix("less") == Some(stem))
    };
    is_negation(left, right) || is_negation(right, left)
}

/// Strips the usual endings: `deletes`, `deleted`, `deleting` and `deletion` have one stem.
pub fn stem_word(word: &str) -> String {
    let lowercase = word.to_lowercase();
    let lowercase = lowercase.strip_suffix("'s").unwrap_or(&lowercase);
    let Some(stripped) = strip_ending(lowercase).filter(|stripped| stripped.chars().count() >= 3) else {
        return lowercase.to_string();
    };
    // `delete` and `delet|ed` must have one stem, so a final `e` is stripped as well; likewise `policy` and `polici|es`.
    let stripped = stripped.strip_suffix('e').unwrap_or(stripped);
    match stripped.strip_suffix('y') {
        Some(front) => alloc::format!("{front}i"),
        None => stripped.to_string(),
    }
}

/// Strips one ending; `None` if the word is too short or has letters that are not ASCII.
fn strip_ending(word: &str) -> Option<&str> {
    if !word.is_ascii() || word.len() < 4 {
        return None;
    }
    let is_long_enough = |beginning: &&str| beginning.len() >= 3;
    if let Some(beginning) = word.strip_suffix("ies").filter(is_long_enough) {
        // `policies` keeps its `i`; `stem_word` turns the `y` of `policy` into one.
        return word.get(..beginning.len() + 1);
    }
    // `process`, `status` and `analysis` end in an `s` without being plurals.
    let is_plural = |word: &&str| !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is");
    let word = match word.strip_suffix('s').filter(|_| is_plural(&word)) {
        Some(beginning) => {
            beginning.strip_suffix("e").filter(|before_es| ends_in_sibilant(before_es)).unwrap_or(beginning)
        }
        None => word,
    };
    for ending in ["ing", "ed", "ion"] {
        if let Some(beginning) = word.strip_suffix(ending).filter(is_long_enough) {
            return Some(undouble_consonant(beginning));
        }
    }
    Some(word)
}

/// Whether the `e` of a plural belongs to the ending, as in `box|es` and `match|es`.
fn ends_in_sibilant(beginning: &str) -> bool {
    ["s", "x", "z", "ch", "sh"].iter().any(|ending| beginning.ends_with(ending))
}

/// Turns a doubled consonant into one: `logg|ing` is `log`, but `call|ing` is `call`.
fn undouble_consonant(beginning: &str) -> &str {
    let bytes = beginning.as_bytes();
    match bytes {
        [.., last_but_one, last] if last_but_one == last && !b"lszaeiou".contains(last) => {
            &beginning[..beginning.len() - 1]
        }
        _ => beginning,
    }
}

/// Whether two words differ by one letter in the middle or at the end, as a typo does.
pub fn is_typo(left: &str, right: &str) -> bool {
    let (shorter, longer) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    // In short words one letter usually makes another word.
    if shorter.len() < 4 || longer.len() - shorter.len() > 1 || !shorter.is_ascii() || !longer.is_ascii() {
        return false;
    }
    let (shorter, longer) = (shorter.as_bytes(), longer.as_bytes());
    let same_prefix = shorter.iter().zip(longer).take_while(|(short_byte, long_byte)| short_byte == long_byte).count();
    let after_difference = if shorter.len() == longer.len() { same_prefix + 1 } else { same_prefix };
    // Behind the difference both words must be equal. A different first letter is no typo.
    same_prefix > 0
        && shorter.get(after_difference..).unwrap_or_default() == longer.get(same_prefix + 1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["delete", "deletes", "deleted", "deleting", "deletion"][..],
            &["policy", "policies", "policy's"],
            &["log", "logs", "logged", "logging"],
            &["box", "boxes"],
            &["retry", "retries", "retried", "retrying"],
            &["call", "calls", "calling"],
        ] {
            for form in forms {
                assert_eq!(stem_word(form), stem_word(forms[0]), "{form}");
            }
        }
        for (left, right) in [("status", "state"), ("user", "use"), ("thing", "the"), ("process", "proc")] {
            assert_ne!(stem_word(left), stem_word(right));
        }
        assert_eq!(stem_word("Größe"), "größe");
    }

    #[test]
    fn a_typo_is_one_letter_and_never_the_first() {
        assert!(is_typo("document", "documnt") && is_typo("colour", "color") && is_typo("strong", "string"));
        assert!(!is_typo("now", "not") && !is_typo("typical", "atypical") && !is_typo("abcd", "xbcd"));
        assert!(!is_typo("word", "words that follow") && !is_typo("receive", "recieve"));
    }

    #[test]
    fn plain_words_are_distinguished_from_names() {
        for name in ["user_id", "Vec::new", "/api/v2", "a.b", "v2"] {
            assert!(!is_plain_word(name), "{name}");
        }
        for word in ["user", "User", "don't", "real-time"] {
            assert!(is_plain_word(word), "{word}");
        }
    }

    #[test]
    fn words_that_change_the_meaning_are_known() {
        for word in ["not", "Never", "doesn't", "must", "MAY", "only", "without"] {
            assert!(changes_meaning(word), "{word}");
        }
        assert!(!changes_meaning("") && !changes_meaning("system"));
        assert!(are_opposites("known", "unknown") && are_opposites("stateless", "stateful"));
        assert!(!are_opposites("known", "shown"));
    }
}
