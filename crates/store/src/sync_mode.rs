//! How safe an entry is when it is acknowledged.

/// When a batch is safe from a power failure. A process that is killed loses nothing that was recorded, with either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it is acknowledged.
    #[default]
    Now,
    /// With the next batch that is synced. Until then, a power failure can lose it, together with everything after it.
    WithNext,
}
