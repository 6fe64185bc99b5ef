//! Confirmed mistakes: a false menu costs the next similar one a few points, until enough later detections were right. This
//! is plain data; the caller stores it.

use serde::{Deserialize, Serialize};

use super::{Menu, Shape};

/// The points that one mistake costs.
const COST: u32 = 5;
/// After so many right detections a mistake begins to cost less, by one point each.
const GOOD: u32 = 10;

/// All confirmed mistakes that still cost points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub confirmed: Vec<Confirmed>,
}

/// A menu that was found and was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    pub trace: Trace,
    /// The number of right detections in other contexts since then.
    pub good: u32,
}

/// What similar menus in similar places have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trace {
    pub shape: Shape,
    /// The keys in their order, in capitals.
    pub keys: String,
    /// The words before the menu, in lower case.
    pub lead: String,
}

impl Trace {
    pub(super) fn of(menu: &Menu, lead: &str) -> Trace {
        let keys: Vec<String> =
            // Long menus and leads are cut, so that a stored mistake stays small.
            menu.options.iter().take(40).map(|option| option.key.to_uppercase()).collect();
        let words = lead.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).take(12);
        let lead: Vec<String> = words.map(str::to_lowercase).collect();
        Trace { shape: menu.shape, keys: keys.join(" "), lead: lead.join(" ") }
    }

    /// Whether two of the three properties agree.
    pub fn is_like(&self, other: &Trace) -> bool {
        let agree = [self.shape == other.shape, self.keys == other.keys, self.lead == other.lead];
        agree.iter().filter(|agree| **agree).count() >= 2
    }
}

impl History {
    /// Records that a menu that was found was none.
    pub fn mistaken(&mut self, trace: Trace) {
        self.confirmed.push(Confirmed { trace, good: 0 });
    }

    /// Records that a menu that was found was right: mistakes in other contexts fade, and those without any cost left are
    /// dropped.
    pub fn right(&mut self, trace: &Trace) {
        // A right detection in the same context proves nothing about the mistake.
        for confirmed in self.confirmed.iter_mut().filter(|confirmed| !confirmed.trace.is_like(trace)) {
            confirmed.good = confirmed.good.saturating_add(1);
        }
        self.confirmed.retain(|confirmed| confirmed.weight() > 0);
    }

    pub(super) fn cost(&self, trace: &Trace) -> u32 {
        let like = self.confirmed.iter().filter(|confirmed| confirmed.trace.is_like(trace));
        like.fold(0, |sum, confirmed| sum.saturating_add(confirmed.weight()))
    }
}

impl Confirmed {
    fn weight(&self) -> u32 {
        COST.saturating_sub(self.good.saturating_sub(GOOD))
    }
}
