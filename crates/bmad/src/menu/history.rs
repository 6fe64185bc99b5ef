//! Confirmed mistakes: what was taken for a menu and was none costs the next one like it a few points, until detections have
//! been right for long enough. Plain data: whoever learns of a mistake keeps it.

use serde::{Deserialize, Serialize};

use super::{Menu, Shape};

/// What one mistake costs.
const COST: u32 = 5;
/// After so many good detections it begins to count less, by a point each.
const GOOD: u32 = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub confirmed: Vec<Confirmed>,
}

/// A menu that was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    pub trace: Trace,
    /// Good detections in other contexts since.
    pub good: u32,
}

/// What two menus have in common that stand in similar places.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trace {
    pub shape: Shape,
    /// In their order, in capitals.
    pub keys: String,
    /// The words before it, in lower case.
    pub lead: String,
}

impl Trace {
    pub(super) fn of(menu: &Menu, lead: &str) -> Trace {
        let keys: Vec<String> =
            menu.options.iter().take(40).map(|option| option.key.to_uppercase()).collect();
        let words = lead.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).take(12);
        let lead: Vec<String> = words.map(str::to_lowercase).collect();
        Trace { shape: menu.shape, keys: keys.join(" "), lead: lead.join(" ") }
    }

    /// Two of the three agree.
    pub fn is_like(&self, other: &Trace) -> bool {
        let agree = [self.shape == other.shape, self.keys == other.keys, self.lead == other.lead];
        agree.iter().filter(|agree| **agree).count() >= 2
    }
}

impl History {
    /// A menu that was found was none.
    pub fn mistaken(&mut self, trace: Trace) {
        self.confirmed.push(Confirmed { trace, good: 0 });
    }

    /// A menu that was found was one: earlier mistakes in other contexts fade, those of no more weight are dropped.
    pub fn right(&mut self, trace: &Trace) {
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
