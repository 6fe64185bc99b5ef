//! How far a run is asked to stop.

/// What the person at the terminal wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    GoOn,
    /// Nothing new starts; what runs may finish.
    Park,
    /// End what runs, too.
    Now,
}
