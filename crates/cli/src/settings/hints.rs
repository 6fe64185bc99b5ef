//! Explains common mistakes in values: a percentage for a fraction, minutes for seconds, "unlimited".

use super::kind::{Kind, nearest_word, real, whole};

/// Ways in which users ask for no limit.
const UNLIMITED: [&str; 12] =
    ["infinite", "infinity", "inf", ".inf", "unlimited", "none", "never", "forever", "no", "off", "-1", "0"];

/// Suggests what was probably meant, as a step to take.
pub(super) fn hint(kind: Kind, text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    match kind {
        // This comes first, since "-1" or "none" is not a slip in the unit.
        Kind::Whole { .. } | Kind::Seconds { .. } | Kind::Minutes | Kind::Cost
            if UNLIMITED.contains(&lower.as_str()) || lower.starts_with('-') =>
        {
            Some("nothing is ever unlimited: name a number".into())
        }
        Kind::Seconds { .. } => duration(kind, &lower, 1, "seconds")
            // A number that is too large by exactly a factor was probably written in a smaller unit.
            .or_else(|| scaled(kind, &lower, 1000, "this looks like milliseconds; seconds are meant")),
        Kind::Minutes => duration(kind, &lower, 60, "minutes")
            .or_else(|| scaled(kind, &lower, 60, "this looks like seconds; minutes are meant")),
        Kind::Fraction => {
            let percent =
                real(lower.trim_end_matches('%').trim()).filter(|number| *number > 1.0 && *number <= 100.0);
            percent
                .map(|number| format!("a fraction is meant, not a percentage: write {:.2}", number / 100.0))
        }
        Kind::Percent => percentage(&lower),
        Kind::Words(words) | Kind::ListOf(words) => {
            nearest_word(text, words).map(|near| format!("did you mean `{near}`?"))
        }
        Kind::List | Kind::Commands => Some(match lower.as_str() {
            "yes" | "no" | "true" | "false" | "on" | "off" => {
                "write the list itself, for instance [\"make test\"]; for none: []".to_string()
            }
            _ => format!("a list has brackets: [{text:?}]"),
        }),
        _ => None,
    }
}

/// Suggests a whole percentage for `98%` or `0.98`.
fn percentage(text: &str) -> Option<String> {
    if let Some(number) = text.strip_suffix('%').and_then(|number| whole(number.trim())) {
        return Some(format!("write it without the sign: {number}"));
    }
    let fraction = real(text).filter(|number| *number > 0.0 && *number < 1.0)?;
    Some(format!("a percentage is meant, not a fraction: write {:.0}", fraction * 100.0))
}

/// Suggests a plain number for `15m`, `2 h` or `90s`; `unit_seconds` is the length of the setting's unit.
fn duration(kind: Kind, text: &str, unit: u64, name: &str) -> Option<String> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let seconds = match text.get(digits.len()..)?.trim() {
        "s" | "sec" | "seconds" => 1,
        "m" | "min" | "minutes" => 60,
        "h" | "hours" => 3600,
        _ => return None,
    };
    // A suggestion outside the allowed range would only lead to the next error.
    let meant = digits.parse::<u64>().ok()?.checked_mul(seconds)? / unit;
    kind.range().contains(&meant).then(|| format!("{name} are meant, as a plain number: write {meant}"))
}

/// Suggests the number divided by `scale_factor`, if that is allowed.
fn scaled(kind: Kind, text: &str, factor: u64, why: &str) -> Option<String> {
    let meant = whole(text).filter(|number| number % factor == 0)? / factor;
    kind.range().contains(&meant).then(|| format!("{why}: write {meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_slips_are_explained() {
        let seconds = Kind::Seconds { min: 1 };
        let table = [
            (Kind::Fraction, "80"),
            (Kind::Fraction, "80%"),
            (Kind::Fraction, "800"),
            (Kind::Percent, "0.98"),
            (Kind::Percent, "98%"),
            (seconds, "900000"),
            (seconds, "15m"),
            (seconds, "2 h"),
            (seconds, "-1"),
            (Kind::Minutes, "1800"),
            (Kind::Minutes, "2h"),
            (Kind::Cost, "unlimited"),
            (Kind::Whole { min: 1, max: 9 }, "0"),
            (Kind::Whole { min: 1, max: 9 }, "many"),
            (Kind::Words(&["minimal", "dual"]), "minmal"),
            (Kind::List, "yes"),
            (Kind::List, "make test"),
        ];
        let said = table.map(|(kind, text)| format!("{text}: {}", hint(kind, text).unwrap_or("-".into())));
        insta::assert_snapshot!(said.join("\n"), @r#"
        80: a fraction is meant, not a percentage: write 0.80
        80%: a fraction is meant, not a percentage: write 0.80
        800: -
        0.98: a percentage is meant, not a fraction: write 98
        98%: write it without the sign: 98
        900000: this looks like milliseconds; seconds are meant: write 900
        15m: seconds are meant, as a plain number: write 900
        2 h: seconds are meant, as a plain number: write 7200
        -1: nothing is ever unlimited: name a number
        1800: this looks like seconds; minutes are meant: write 30
        2h: minutes are meant, as a plain number: write 120
        unlimited: nothing is ever unlimited: name a number
        0: nothing is ever unlimited: name a number
        many: -
        minmal: did you mean `minimal`?
        yes: write the list itself, for instance ["make test"]; for none: []
        make test: a list has brackets: ["make test"]
        "#);
    }
}
