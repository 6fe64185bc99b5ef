//! Money.

use core::{fmt, ops::AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Money in millionths, so that sums are exact; a plain number in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
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

impl Serialize for Cost {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.amount())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Cost::from_amount)
    }
}
