//! Money.

use core::{fmt, ops::AddAssign};

use tribunal_json::{FromJson, JsonError, Node, ToJson, schemars};

/// Money in millionths, so that sums are exact; a plain number in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, schemars::JsonSchema)]
#[schemars(with = "f64")]
pub struct Cost(pub u64);

impl Cost {
    pub fn from_amount(amount: f64) -> Cost {
        // A negative or infinite amount is a bug of the reporting client and counts as nothing.
        if amount.is_finite() && amount > 0.0 { Cost((amount * 1e6 + 0.5) as u64) } else { Cost(0) }
    }

    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    pub fn amount(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, added_cost: Cost) {
        // Sums saturate: an overflow must not look like an unused budget.
        self.0 = self.0.saturating_add(added_cost.0);
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.2}", self.amount())
    }
}

impl ToJson for Cost {
    fn to_node(&self) -> Node<'_> {
        Node::Real(self.amount())
    }
}

impl FromJson for Cost {
    fn from_value(value: serde_json::Value) -> Result<Cost, JsonError> {
        f64::from_value(value).map(Cost::from_amount)
    }
}

tribunal_json::serde_by_json!(Cost);
