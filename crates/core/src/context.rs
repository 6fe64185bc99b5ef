//! The results of earlier attempts in a run, for the next prompt, in layers.
//!
//! | layer | kept | shown |
//! | --- | --- | --- |
//! | stable: the progress of the run | | always, never shortened away |
//! | outputs: what agents answered | the last 5, of 500 characters each | the last 3 |
//! | successes: what worked | the last 3 | all |
//! | errors: what did not | the last 5 | the last 2 |
//!
//! The layers are shown in this order within a number of characters. What does not fit is dropped, least valuable first (the
//! oldest output, the oldest success, the older error), with a note that something was left out.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{cut, fold_line};

/// The most characters of all layers together.
pub const MOST_CHARS: usize = 3_000;
const OUTPUT_CHARS: usize = 500;
const OUTPUTS: Kept = Kept { kept: 5, shown: 3 };
const SUCCESSES: Kept = Kept { kept: 3, shown: 3 };
const ERRORS: Kept = Kept { kept: 5, shown: 2 };
const LEFT_OUT: &str = "(more was left out for want of room)\n";

struct Kept {
    kept: usize,
    shown: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Context {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stable: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    successes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

impl Context {
    pub fn is_empty(&self) -> bool {
        *self == Context::default()
    }

    pub fn answered(&mut self, output: &str) {
        keep(&mut self.outputs, output, &OUTPUTS);
    }

    pub fn worked(&mut self, what: &str) {
        keep(&mut self.successes, what, &SUCCESSES);
    }

    pub fn failed(&mut self, why: &str) {
        keep(&mut self.errors, why, &ERRORS);
    }

    /// Renders at most so many characters; the stable layer is shortened last, and never to nothing.
    pub fn render(&self, most: usize) -> String {
        // Only the newest items of each layer are candidates.
        let mut outputs = last(&self.outputs, OUTPUTS.shown);
        let mut successes = last(&self.successes, SUCCESSES.shown);
        let mut errors = last(&self.errors, ERRORS.shown);
        let mut cut_off = false;
        loop {
            let mut text = String::new();
            if !self.stable.is_empty() {
                text.push_str(&self.stable);
                text.push('\n');
            }
            layer(&mut text, "Answered lately:", outputs);
            layer(&mut text, "What worked:", successes);
            layer(&mut text, "What did not:", errors);
            if cut_off {
                text.push_str(LEFT_OUT);
            }
            // The least valuable layer with items loses its oldest one in each pass.
            let Some(least) = [&mut outputs, &mut successes, &mut errors].into_iter().find(|l| !l.is_empty())
            else {
                // Only the stable layer is left, so it is cut; one character is reserved for the ellipsis.
                return cut(text.trim_end(), most.max(1) - 1);
            };
            if text.chars().count() <= most {
                return text.trim_end().to_string();
            }
            *least = &least[1..];
            cut_off = true;
        }
    }
}

fn keep(layer: &mut Vec<String>, text: &str, of: &Kept) {
    // One line of limited length: the text comes from an agent.
    layer.push(cut(&fold_line(text), OUTPUT_CHARS - 1));
    // Only one item was added, so at most one has to go.
    if layer.len() > of.kept {
        layer.remove(0);
    }
}

fn last(layer: &[String], shown: usize) -> &[String] {
    &layer[layer.len().saturating_sub(shown)..]
}

fn layer(text: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    text.push_str(title);
    text.push('\n');
    for item in items {
        text.push_str(&format!("- {item}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Context {
        let mut context = Context { stable: "Round 2 of 3.".into(), ..Context::default() };
        for n in 1..=7 {
            context.answered(&format!("answer {n} {}", "ä".repeat(600)));
            context.worked(&format!("success {n}"));
            context.failed(&format!("failure {n}"));
        }
        context
    }

    #[test]
    fn so_many_of_each_layer_are_kept_and_shown_in_order() {
        let context = full();
        assert_eq!((context.outputs.len(), context.successes.len(), context.errors.len()), (5, 3, 5));
        let text = context.render(MOST_CHARS);
        let at = |what: &str| text.find(what).unwrap_or(usize::MAX);
        assert!(at("Round 2") < at("answer 5") && at("answer 5") < at("answer 7"));
        assert!(at("answer 7") < at("success 5") && at("success 7") < at("failure 6"), "{text}");
        assert!(!text.contains("answer 4") && !text.contains("failure 5"));
        assert!(context.outputs.iter().all(|output| output.chars().count() <= OUTPUT_CHARS));
    }

    #[test]
    fn what_has_no_room_goes_least_valuable_first_and_the_stable_layer_stays() {
        let context = full();
        for most in (0..3_000).rev() {
            let text = context.render(most);
            assert!(text.chars().count() <= most.max(1), "{most}: {text}");
            let has = |what: &str| text.contains(what);
            assert!(!has("answer 5") || has("answer 7"), "the oldest goes first: {most}");
            assert!(!has("answer") || has("success 5"), "outputs before successes: {most}");
            assert!(!has("success") || has("failure 6"), "successes before errors: {most}");
            assert!(has("left out") || has("answer 5") || most < 60, "it is said: {most}: {text}");
            assert!(most < 20 || text.starts_with("Round 2 of 3."), "{most}: {text}");
        }
    }

    #[test]
    fn nothing_known_is_nothing_said() {
        assert_eq!(Context::default().render(MOST_CHARS), "");
    }
}
