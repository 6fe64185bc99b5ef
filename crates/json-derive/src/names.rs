//! How fields and variants are called in JSON.

use syn::LitStr;

/// A rule of `rename_all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameCase {
    Snake,
    Kebab,
    Lower,
    Camel,
    ScreamingSnake,
}

impl NameCase {
    pub(crate) fn parse(rule: &LitStr) -> syn::Result<NameCase> {
        Ok(match rule.value().as_str() {
            "snake_case" => NameCase::Snake,
            "kebab-case" => NameCase::Kebab,
            "lowercase" => NameCase::Lower,
            "camelCase" => NameCase::Camel,
            "SCREAMING_SNAKE_CASE" => NameCase::ScreamingSnake,
            _ => return Err(syn::Error::new(rule.span(), "this rule is not known to the derives of tribunal-json")),
        })
    }

    /// The name of a field, which is written in snake case in Rust.
    pub(crate) fn name_field(self, field: &str) -> String {
        match self {
            NameCase::Snake | NameCase::Lower => field.to_string(),
            NameCase::Kebab => field.replace('_', "-"),
            NameCase::ScreamingSnake => field.to_uppercase(),
            NameCase::Camel => {
                let mut name = String::new();
                let mut is_start = false;
                for letter in field.chars() {
                    match letter {
                        '_' => is_start = true,
                        _ if is_start => {
                            name.extend(letter.to_uppercase());
                            is_start = false;
                        }
                        _ => name.push(letter),
                    }
                }
                name
            }
        }
    }

    /// The name of a variant, which is written in camel case in Rust.
    pub(crate) fn name_variant(self, variant: &str) -> String {
        let snake = || {
            let mut name = String::new();
            for (position, letter) in variant.char_indices() {
                if position > 0 && letter.is_uppercase() {
                    name.push('_');
                }
                name.extend(letter.to_lowercase());
            }
            name
        };
        match self {
            NameCase::Snake => snake(),
            NameCase::Kebab => snake().replace('_', "-"),
            NameCase::ScreamingSnake => snake().to_uppercase(),
            NameCase::Lower => variant.to_lowercase(),
            NameCase::Camel => {
                let mut letters = variant.chars();
                letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_serde() {
        let name_both = |case: NameCase| (case.name_field("max_cost_usd"), case.name_variant("RunStarted"));
        let expected = |field: &str, variant: &str| (field.to_string(), variant.to_string());
        assert_eq!(name_both(NameCase::Snake), expected("max_cost_usd", "run_started"));
        assert_eq!(name_both(NameCase::Kebab), expected("max-cost-usd", "run-started"));
        assert_eq!(name_both(NameCase::Lower), expected("max_cost_usd", "runstarted"));
        assert_eq!(name_both(NameCase::Camel), expected("maxCostUsd", "runStarted"));
        assert_eq!(name_both(NameCase::ScreamingSnake), expected("MAX_COST_USD", "RUN_STARTED"));
    }
}
