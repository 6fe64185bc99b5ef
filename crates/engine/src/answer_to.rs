//! Which outcome belongs to which effect.

/// Replies that can carry the outcome of an effect.
pub trait AnswerTo<E>: Sized {
    type Outcome;

    /// Extracts the outcome from a reply; `None` if the reply belongs to another kind of effect.
    fn into_outcome(self) -> Option<Self::Outcome>;
}
