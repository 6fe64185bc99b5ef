//! How far a run is asked to stop.

/// What the user at the terminal wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    GoOn,
    /// Nothing new starts; running effects may finish.
    Park,
    /// Running effects are ended as well.
    Now,
}
