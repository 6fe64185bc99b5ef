//! The results of earlier attempts in a run, for the next prompt, in layers.
//!
//! | layer | kept | shown |
//! | --- | --- | --- |
//! | stable: the progress of the run | | always, never shortened away |
//! | outputs: what agents answered | the last 5 | the last 3 |
//! | successes: what worked | the last 3 | all |
//! | errors: what did not | the last 5 | the last 2 |
//!
//! Each output, success and error is cut to 500 characters. The layers are shown in this order within a number of
//! characters. What does not fit is dropped, least valuable first (the oldest output, the oldest success, the older error),
//! with a note that something was left out.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::text::{sanitize_to_line, truncate_chars};

/// The most characters of all layers together.
pub const MAX_CHARS: usize = 3_000;
const MAX_ITEM_CHARS: usize = 500;
const OUTPUT_LIMITS: LayerLimits = LayerLimits { max_kept: 5, max_shown: 3 };
const SUCCESS_LIMITS: LayerLimits = LayerLimits { max_kept: 3, max_shown: 3 };
const ERROR_LIMITS: LayerLimits = LayerLimits { max_kept: 5, max_shown: 2 };
const LEFT_OUT_NOTE: &str = "(more was left out to save space)\n";

struct LayerLimits {
    max_kept: usize,
    max_shown: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PromptContext {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stable: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    successes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

impl PromptContext {
    pub fn is_empty(&self) -> bool {
        *self == PromptContext::default()
    }

    pub fn add_output(&mut self, output: &str) {
        keep_item(&mut self.outputs, output, &OUTPUT_LIMITS);
    }

    pub fn add_success(&mut self, success: &str) {
        keep_item(&mut self.successes, success, &SUCCESS_LIMITS);
    }

    pub fn add_error(&mut self, error_text: &str) {
        keep_item(&mut self.errors, error_text, &ERROR_LIMITS);
    }

    /// Renders at most so many characters; the stable layer is shortened last, and never to nothing.
    pub fn render(&self, max_chars: usize) -> String {
        // Only the newest items of each layer are candidates.
        let mut outputs = last_items(&self.outputs, OUTPUT_LIMITS.max_shown);
        let mut successes = last_items(&self.successes, SUCCESS_LIMITS.max_shown);
        let mut errors = last_items(&self.errors, ERROR_LIMITS.max_shown);
        let mut is_shortened = false;
        loop {
            let mut rendered = String::new();
            if !self.stable.is_empty() {
                rendered.push_str(&self.stable);
                rendered.push('\n');
            }
            write_layer(&mut rendered, "Recent answers:", outputs);
            write_layer(&mut rendered, "What worked:", successes);
            write_layer(&mut rendered, "What did not work:", errors);
            if is_shortened {
                rendered.push_str(LEFT_OUT_NOTE);
            }
            // The least valuable layer with items loses its oldest one in each pass.
            let Some(least_valuable) =
                [&mut outputs, &mut successes, &mut errors].into_iter().find(|layer_items| !layer_items.is_empty())
            else {
                // Only the stable layer is left, so it is cut; one character is reserved for the ellipsis.
                return truncate_chars(rendered.trim_end(), max_chars.max(1) - 1);
            };
            if rendered.chars().count() <= max_chars {
                return rendered.trim_end().to_string();
            }
            *least_valuable = &least_valuable[1..];
            is_shortened = true;
        }
    }
}

fn keep_item(layer_items: &mut Vec<String>, item_text: &str, limits: &LayerLimits) {
    // One line of limited length: the text comes from an agent.
    layer_items.push(truncate_chars(&sanitize_to_line(item_text), MAX_ITEM_CHARS - 1));
    // Only one item was added, so at most one has to go.
    if layer_items.len() > limits.max_kept {
        layer_items.remove(0);
    }
}

fn last_items(layer_items: &[String], max_shown: usize) -> &[String] {
    &layer_items[layer_items.len().saturating_sub(max_shown)..]
}

fn write_layer(rendered: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    rendered.push_str(title);
    rendered.push('\n');
    for item in items {
        rendered.push_str(&format!("- {item}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_context() -> PromptContext {
        let mut context = PromptContext { stable: "Round 2 of 3.".into(), ..PromptContext::default() };
        for number in 1..=7 {
            context.add_output(&format!("answer {number} {}", "ä".repeat(600)));
            context.add_success(&format!("success {number}"));
            context.add_error(&format!("failure {number}"));
        }
        context
    }

    #[test]
    fn each_layer_keeps_and_shows_its_last_items_in_order() {
        let context = full_context();
        assert_eq!((context.outputs.len(), context.successes.len(), context.errors.len()), (5, 3, 5));
        let rendered = context.render(MAX_CHARS);
        let position_of = |needle: &str| rendered.find(needle).unwrap_or(usize::MAX);
        assert!(position_of("Round 2") < position_of("answer 5") && position_of("answer 5") < position_of("answer 7"));
        assert!(
            position_of("answer 7") < position_of("success 5") && position_of("success 7") < position_of("failure 6"),
            "{rendered}"
        );
        assert!(!rendered.contains("answer 4") && !rendered.contains("failure 5"));
        assert!(context.outputs.iter().all(|output| output.chars().count() <= MAX_ITEM_CHARS));
    }

    #[test]
    fn the_least_valuable_items_go_first_and_the_stable_layer_stays() {
        let context = full_context();
        for max_chars in (0..3_000).rev() {
            let rendered = context.render(max_chars);
            assert!(rendered.chars().count() <= max_chars.max(1), "{max_chars}: {rendered}");
            let is_shown = |needle: &str| rendered.contains(needle);
            assert!(!is_shown("answer 5") || is_shown("answer 7"), "the oldest goes first: {max_chars}");
            assert!(!is_shown("answer") || is_shown("success 5"), "outputs before successes: {max_chars}");
            assert!(!is_shown("success") || is_shown("failure 6"), "successes before errors: {max_chars}");
            assert!(
                is_shown("left out") || is_shown("answer 5") || max_chars < 60,
                "it is said: {max_chars}: {rendered}"
            );
            assert!(max_chars < 20 || rendered.starts_with("Round 2 of 3."), "{max_chars}: {rendered}");
        }
    }

    #[test]
    fn an_empty_context_renders_nothing() {
        assert_eq!(PromptContext::default().render(MAX_CHARS), "");
    }
}
