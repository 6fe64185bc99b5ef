//! Words: which of them carry meaning, and when two are forms of one.
//!
//! English only, and without a dictionary: endings, a list of stop words, a list of words that change the meaning of a
//! sentence. Words of other languages stay as written, so that they are compared literally. [`crate::ground`] and
//! [`crate::merge`] decide what is compared for which purpose.

use alloc::string::{String, ToString};

/// Words that say nothing about the topic of a text. Blanks on both sides make them searchable with [`is_in_list`].
const SMALL: &str = " a about again also although an and another are as at be because been being both but by \
    could did do does doing done for from get gets had has have having he her here his how however i if in into is it \
    its itself just like made make makes many me might much my of off on one or other our out over own per rather s \
    same say says she so some still such t than that the their them then there therefore these they thing this those \
    though through thus to too under up us very via was we were what when where whether which while who whom whose why \
    will with would yet you your ";

/// Words that change the meaning of a sentence when they are added, removed or replaced.
const TELLING: &str = " above accept accepted after all allow allowed always any before below cannot decrease denied \
    deny disable disabled each enable enabled every except false first forbid forbidden increase last least less max \
    maximum may min minimum more most must neither never no none nor not off often on only optional or private public \
    rarely read reject rejected required shall should sometimes true under unless until without write ";

/// Whether a token is a plain word: letters, with apostrophes or hyphens in the middle.
pub fn is_plain(token: &str) -> bool {
    let mut chars = token.chars();
    // The first character excludes tokens such as `-x` and `'quoted`.
    chars.next().is_some_and(char::is_alphabetic)
        && token.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '-')
}

pub fn is_small(word: &str) -> bool {
    listed(SMALL, word)
}

/// Whether the word is a negation: `not`, `never`, `don't`, …
pub fn negates(word: &str) -> bool {
    let word = word.to_lowercase();
    word.ends_with("n't")
        || ["not", "no", "never", "none", "nor", "neither", "without", "cannot", "unless", "except"]
            .contains(&word.as_str())
}

/// Whether a sentence may say something else with this word, or without it.
pub fn is_telling(word: &str) -> bool {
    negates(word) || listed(TELLING, word)
}

/// Whether a word is in a list whose words have blanks on both sides.
pub fn listed(list: &str, word: &str) -> bool {
    let mut padded = String::with_capacity(word.len() + 2);
    padded.push(' ');
    padded.extend(word.chars().flat_map(char::to_lowercase));
    padded.push(' ');
    // Padding makes a substring search match whole words only; an empty word would match anywhere.
    padded.len() > 2 && list.contains(padded.as_str())
}

/// Whether one word is the opposite of the other: `known` and `unknown`, `stateful` and `stateless`.
pub fn are_opposites(one: &str, other: &str) -> bool {
    let turned = |plain: &str, turned: &str| {
        // A wrong hit only makes grounding stricter, so the list may be generous.
        let prefixes = ["un", "in", "im", "ir", "il", "dis", "non", "non-", "de", "mis", "a"];
        prefixes.iter().any(|prefix| turned.strip_prefix(prefix) == Some(plain))
            || plain.strip_suffix("ful").is_some_and(|stem| turned.strip_suffix("less") == Some(stem))
    };
    turned(one, other) || turned(other, one)
}

/// Strips the usual endings: `deletes`, `deleted`, `deleting` and `deletion` have one stem.
pub fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    let word = word.strip_suffix("'s").unwrap_or(&word);
    let Some(bare) = bare(word).filter(|bare| bare.chars().count() >= 3) else { return word.to_string() };
    // `delete` and `delet|ed` must meet, so a final `e` goes as well; likewise `policy` and `polici|es`.
    let bare = bare.strip_suffix('e').unwrap_or(bare);
    match bare.strip_suffix('y') {
        Some(front) => alloc::format!("{front}i"),
        None => bare.to_string(),
    }
}

/// Strips one ending; `None` if the word is too short or not English enough to have one.
fn bare(word: &str) -> Option<&str> {
    if !word.is_ascii() || word.len() < 4 {
        return None;
    }
    let long = |front: &&str| front.len() >= 3;
    if let Some(front) = word.strip_suffix("ies").filter(long) {
        // `policies` keeps its `i`; `stem_word` turns the `y` of `policy` into one.
        return word.get(..front.len() + 1);
    }
    // `process`, `status` and `analysis` end in an `s` without being plurals.
    let plural = |word: &&str| !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is");
    let word = match word.strip_suffix('s').filter(|_| plural(&word)) {
        Some(front) => front.strip_suffix("e").filter(|f| hissing(f)).unwrap_or(front),
        None => word,
    };
    for ending in ["ing", "ed", "ion"] {
        if let Some(front) = word.strip_suffix(ending).filter(long) {
            return Some(single(front));
        }
    }
    Some(word)
}

/// Whether the `e` of a plural belongs to the ending, as in `box|es` and `match|es`.
fn hissing(front: &str) -> bool {
    ["s", "x", "z", "ch", "sh"].iter().any(|end| front.ends_with(end))
}

/// Turns a doubled consonant into one: `logg|ing` is `log`, but `call|ing` is `call`.
fn single(front: &str) -> &str {
    let bytes = front.as_bytes();
    match bytes {
        [.., a, b] if a == b && !b"lszaeiou".contains(b) => &front[..front.len() - 1],
        _ => front,
    }
}

/// Whether two words differ by one letter in the middle or at the end, as a typo does.
pub fn is_slip(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    // In short words one letter usually makes another word.
    if short.len() < 4 || long.len() - short.len() > 1 || !short.is_ascii() || !long.is_ascii() {
        return false;
    }
    let (short, long) = (short.as_bytes(), long.as_bytes());
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let rest = if short.len() == long.len() { same + 1 } else { same };
    // Behind the difference both words must be equal. A different first letter is no typo.
    same > 0 && short.get(rest..).unwrap_or_default() == long.get(same + 1..).unwrap_or_default()
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
                assert_eq!(stem(form), stem(forms[0]), "{form}");
            }
        }
        for (one, other) in [("status", "state"), ("user", "use"), ("thing", "the"), ("process", "proc")] {
            assert_ne!(stem(one), stem(other));
        }
        assert_eq!(stem("Größe"), "größe");
    }

    #[test]
    fn a_slip_is_one_letter_and_never_the_first() {
        assert!(is_slip("document", "documnt") && is_slip("colour", "color") && is_slip("strong", "string"));
        assert!(!is_slip("now", "not") && !is_slip("typical", "atypical") && !is_slip("abcd", "xbcd"));
        assert!(!is_slip("word", "words that follow") && !is_slip("receive", "recieve"));
    }

    #[test]
    fn plain_words_are_told_from_names() {
        for name in ["user_id", "Vec::new", "/api/v2", "a.b", "v2"] {
            assert!(!is_plain(name), "{name}");
        }
        for word in ["user", "User", "don't", "real-time"] {
            assert!(is_plain(word), "{word}");
        }
    }

    #[test]
    fn words_that_turn_a_sentence_round_are_known() {
        for word in ["not", "Never", "doesn't", "must", "MAY", "only", "without"] {
            assert!(is_telling(word), "{word}");
        }
        assert!(!is_telling("") && !is_telling("system"));
        assert!(are_opposites("known", "unknown") && are_opposites("stateless", "stateful"));
        assert!(!are_opposites("known", "shown"));
    }
}
