//! The host as the stages of a sprint see it.

use crate::{runs::kind_host::KindHost, sprint::order::SprintOrder};

pub(super) type SprintHost<'a> = KindHost<'a, SprintOrder>;
