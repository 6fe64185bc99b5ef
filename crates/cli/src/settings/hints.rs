//! Explains common mistakes in values: a percentage for a fraction, minutes for seconds, "unlimited".

use super::kind::{ValueKind, nearest_word, parse_real, parse_whole};

/// Ways in which users ask for no limit.
const UNLIMITED_WORDS: [&str; 12] =
    ["infinite", "infinity", "inf", ".inf", "unlimited", "none", "never", "forever", "no", "off", "-1", "0"];

/// Suggests what was probably meant, as a step to take.
pub(super) fn suggest_fix(value_kind: ValueKind, typed_text: &str) -> Option<String> {
    let lowercase_text = typed_text.to_lowercase();
    match value_kind {
        // This comes first, since "-1" or "none" is not a slip in the unit.
        ValueKind::Whole { .. } | ValueKind::Seconds { .. } | ValueKind::Minutes | ValueKind::Cost
            if UNLIMITED_WORDS.contains(&lowercase_text.as_str()) || lowercase_text.starts_with('-') =>
        {
            Some("unlimited is not supported; set a number".into())
        }
        ValueKind::Seconds { .. } => suggest_duration(value_kind, &lowercase_text, 1, "seconds")
            // A number that is too large by exactly a factor was probably written in a smaller unit.
            .or_else(|| suggest_scaled(value_kind, &lowercase_text, 1000, "the unit is seconds, not milliseconds")),
        ValueKind::Minutes => suggest_duration(value_kind, &lowercase_text, 60, "minutes")
            .or_else(|| suggest_scaled(value_kind, &lowercase_text, 60, "the unit is minutes, not seconds")),
        ValueKind::Fraction => {
            let percent_value = parse_real(lowercase_text.trim_end_matches('%').trim())
                .filter(|typed_number| *typed_number > 1.0 && *typed_number <= 100.0);
            percent_value
                .map(|typed_number| format!("use a fraction instead of a percentage: {:.2}", typed_number / 100.0))
        }
        ValueKind::Percent => suggest_percentage(&lowercase_text),
        ValueKind::Words(allowed_words) | ValueKind::ListOf(allowed_words) => {
            nearest_word(typed_text, allowed_words).map(|nearest| format!("did you mean `{nearest}`?"))
        }
        ValueKind::Argv => Some(suggest_argv(typed_text)),
        ValueKind::List | ValueKind::Commands | ValueKind::Checks => Some(match lowercase_text.as_str() {
            "yes" | "no" | "true" | "false" | "on" | "off" => {
                "write a list, for example [\"make test\"], or [] for none".to_string()
            }
            _ => format!("write it as a list: [{typed_text:?}]"),
        }),
        _ => None,
    }
}

/// Suggests the right form of a command that was written as one text in a file: `argv: [my, agent, --print]`.
pub(crate) fn suggest_argv(command_line: &str) -> String {
    format!("write the program and its arguments as a list: `argv: {}`", format_argv_list(command_line))
}

/// Formats the words of a command line as a list: `[my, agent, --print]`.
pub(super) fn format_argv_list(command_line: &str) -> String {
    // Quotes would have to be taken apart as a shell does it, so such a line gets a general example.
    let words_text = match command_line.contains(['"', '\'', '\\']) || command_line.trim().is_empty() {
        true => "my, agent, --print".to_string(),
        false => command_line.split_whitespace().map(quote_list_item).collect::<Vec<_>>().join(", "),
    };
    format!("[{words_text}]")
}

/// Quotes an item of a YAML list, if it needs that.
fn quote_list_item(item_text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./=+".contains(character);
    if item_text.chars().all(is_plain) { item_text.to_string() } else { format!("{item_text:?}") }
}

/// Suggests a whole percentage for `98%` or `0.98`.
fn suggest_percentage(typed_text: &str) -> Option<String> {
    if let Some(typed_number) = typed_text.strip_suffix('%').and_then(|number_text| parse_whole(number_text.trim())) {
        return Some(format!("omit the percent sign: {typed_number}"));
    }
    let fraction = parse_real(typed_text).filter(|typed_number| *typed_number > 0.0 && *typed_number < 1.0)?;
    Some(format!("use a percentage instead of a fraction: {:.0}", fraction * 100.0))
}

/// Suggests a plain number for `15m`, `2 h` or `90s`; `unit_seconds` is the length of the setting's unit.
fn suggest_duration(value_kind: ValueKind, typed_text: &str, unit_seconds: u64, unit_name: &str) -> Option<String> {
    let digits: String = typed_text.chars().take_while(char::is_ascii_digit).collect();
    let seconds_per_unit = match typed_text.get(digits.len()..)?.trim() {
        "s" | "sec" | "seconds" => 1,
        "m" | "min" | "minutes" => 60,
        "h" | "hours" => 3600,
        _ => return None,
    };
    // A suggestion outside the allowed range would only lead to the next error.
    let meant_value = digits.parse::<u64>().ok()?.checked_mul(seconds_per_unit)? / unit_seconds;
    value_kind
        .allowed_range()
        .contains(&meant_value)
        .then(|| format!("write the number of {unit_name} without a unit: {meant_value}"))
}

/// Suggests the number divided by `scale_factor`, if that is allowed.
fn suggest_scaled(value_kind: ValueKind, typed_text: &str, scale_factor: u64, reason: &str) -> Option<String> {
    let meant_value = parse_whole(typed_text).filter(|typed_number| typed_number % scale_factor == 0)? / scale_factor;
    value_kind.allowed_range().contains(&meant_value).then(|| format!("{reason}; write {meant_value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_mistakes_are_explained() {
        let seconds_kind = ValueKind::Seconds { minimum: 1 };
        let mistakes = [
            (ValueKind::Fraction, "80"),
            (ValueKind::Fraction, "80%"),
            (ValueKind::Fraction, "800"),
            (ValueKind::Percent, "0.98"),
            (ValueKind::Percent, "98%"),
            (seconds_kind, "900000"),
            (seconds_kind, "15m"),
            (seconds_kind, "2 h"),
            (seconds_kind, "-1"),
            (ValueKind::Minutes, "1800"),
            (ValueKind::Minutes, "2h"),
            (ValueKind::Cost, "unlimited"),
            (ValueKind::Whole { minimum: 1, maximum: 9 }, "0"),
            (ValueKind::Whole { minimum: 1, maximum: 9 }, "many"),
            (ValueKind::Words(&["minimal", "dual"]), "minmal"),
            (ValueKind::List, "yes"),
            (ValueKind::List, "make test"),
        ];
        let suggestions = mistakes.map(|(value_kind, typed_text)| {
            format!("{typed_text}: {}", suggest_fix(value_kind, typed_text).unwrap_or("-".into()))
        });
        insta::assert_snapshot!(suggestions.join("\n"), @r#"
        80: use a fraction instead of a percentage: 0.80
        80%: use a fraction instead of a percentage: 0.80
        800: -
        0.98: use a percentage instead of a fraction: 98
        98%: omit the percent sign: 98
        900000: the unit is seconds, not milliseconds; write 900
        15m: write the number of seconds without a unit: 900
        2 h: write the number of seconds without a unit: 7200
        -1: unlimited is not supported; set a number
        1800: the unit is minutes, not seconds; write 30
        2h: write the number of minutes without a unit: 120
        unlimited: unlimited is not supported; set a number
        0: unlimited is not supported; set a number
        many: -
        minmal: did you mean `minimal`?
        yes: write a list, for example ["make test"], or [] for none
        make test: write it as a list: ["make test"]
        "#);
    }
}
