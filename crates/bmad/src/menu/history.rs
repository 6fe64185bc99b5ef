//! Confirmed mistakes: a false menu costs the next similar one a few points, until enough later detections were right. This
//! is plain data; the caller stores it.

use super::{Menu, MenuShape};
use tribunal_json::{Deserialize, Serialize};

/// The points that one mistake costs.
const MISTAKE_COST: u32 = 5;
/// After so many right detections a mistake begins to cost less, by one point each.
const SUCCESSES_BEFORE_FADING: u32 = 10;

/// All confirmed mistakes that still cost points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MistakeHistory {
    pub confirmed: Vec<ConfirmedMistake>,
}

/// A menu that was found and was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedMistake {
    pub trace: MenuTrace,
    /// The number of right detections in other contexts since then.
    pub good: u32,
}

/// What similar menus in similar places have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MenuTrace {
    pub shape: MenuShape,
    /// The keys in their order, in capitals.
    pub keys: String,
    /// The words before the menu, in lower case.
    pub lead: String,
}

impl MenuTrace {
    pub(super) fn from_menu(menu: &Menu, lead_text: &str) -> MenuTrace {
        let upper_keys: Vec<String> =
            // Long menus and leads are cut, so that a stored mistake stays small.
            menu.options.iter().take(40).map(|option| option.key.to_uppercase()).collect();
        let lead_words = lead_text
            .split(|character: char| !character.is_alphabetic())
            .filter(|lead_word| !lead_word.is_empty())
            .take(12);
        let lower_words: Vec<String> = lead_words.map(str::to_lowercase).collect();
        MenuTrace { shape: menu.shape, keys: upper_keys.join(" "), lead: lower_words.join(" ") }
    }

    /// Whether two of the three properties agree.
    pub fn is_similar(&self, other_trace: &MenuTrace) -> bool {
        let agreements =
            [self.shape == other_trace.shape, self.keys == other_trace.keys, self.lead == other_trace.lead];
        agreements.iter().filter(|agrees| **agrees).count() >= 2
    }
}

impl MistakeHistory {
    /// Records that a menu that was found was none.
    pub fn record_mistake(&mut self, trace: MenuTrace) {
        self.confirmed.push(ConfirmedMistake { trace, good: 0 });
    }

    /// Records that a menu that was found was right: mistakes in other contexts fade, and those without any cost left are
    /// dropped.
    pub fn record_success(&mut self, trace: &MenuTrace) {
        // A right detection in the same context proves nothing about the mistake.
        for mistake in self.confirmed.iter_mut().filter(|mistake| !mistake.trace.is_similar(trace)) {
            mistake.good = mistake.good.saturating_add(1);
        }
        self.confirmed.retain(|mistake| mistake.current_cost() > 0);
    }

    pub(super) fn penalty(&self, trace: &MenuTrace) -> u32 {
        let similar_mistakes = self.confirmed.iter().filter(|mistake| mistake.trace.is_similar(trace));
        similar_mistakes.fold(0, |sum, mistake| sum.saturating_add(mistake.current_cost()))
    }
}

impl ConfirmedMistake {
    fn current_cost(&self) -> u32 {
        MISTAKE_COST.saturating_sub(self.good.saturating_sub(SUCCESSES_BEFORE_FADING))
    }
}
