//! Counts what an agent uses while it works, so that a task ends when it passes its share.
//!
//! Some clients report their usage only at the end, or never. Every message of the model and every call of a tool is a turn, in
//! which the model reads the whole conversation again, most of it from the provider's cache. The figures are estimates: four
//! bytes are one token.

use std::sync::{Mutex, PoisonError};

use tribunal_engine::limits::AgentUsage;

/// The most that a task may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskShare {
    pub tokens: u64,
    pub turns: u32,
}

/// Which limit a task has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassedLimit {
    Tokens { used: u64, limit: u64 },
    Turns { limit: u32 },
}

#[derive(Debug)]
pub(super) struct UsageMeter {
    share: TaskShare,
    counts: Mutex<MeterCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct MeterCounts {
    turns: u32,
    /// What the conversation has by now: the prompt, the answers, and what tools returned.
    context_bytes: u64,
    answer_bytes: u64,
    /// What was read again from the cache, in all turns together.
    cached_bytes: u64,
    passed_limit: Option<PassedLimit>,
}

impl MeterCounts {
    fn estimate_usage(&self) -> AgentUsage {
        AgentUsage {
            input_tokens: self.context_bytes.saturating_sub(self.answer_bytes) / 4,
            output_tokens: self.answer_bytes / 4,
            cached_tokens: self.cached_bytes / 4,
            estimated: true,
            ..AgentUsage::default()
        }
    }
}

impl UsageMeter {
    pub fn new(prompt_bytes: usize, share: TaskShare) -> UsageMeter {
        let counts = MeterCounts { context_bytes: prompt_bytes as u64, ..MeterCounts::default() };
        UsageMeter { share, counts: Mutex::new(counts) }
    }

    /// Counts what an agent printed: so many bytes in so many turns, of which these are its answers. Returns the limit that it
    /// has passed.
    pub fn add_output(&self, byte_count: usize, turns: u32, answer_bytes: usize) -> Option<PassedLimit> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.turns > 0 || turns > 1 {
            let repeated_turns = if counts.turns > 0 { turns } else { turns - 1 };
            counts.cached_bytes += u64::from(repeated_turns) * counts.context_bytes;
        }
        counts.turns += turns;
        counts.context_bytes += byte_count as u64;
        counts.answer_bytes += answer_bytes as u64;
        let used = counts.estimate_usage().weighted_tokens();
        if counts.passed_limit.is_none() {
            counts.passed_limit = match self.share {
                TaskShare { tokens, .. } if used > tokens => Some(PassedLimit::Tokens { used, limit: tokens }),
                TaskShare { turns, .. } if counts.turns > turns => Some(PassedLimit::Turns { limit: turns }),
                _ => None,
            };
        }
        counts.passed_limit
    }

    pub fn passed_limit(&self) -> Option<PassedLimit> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).passed_limit
    }

    /// What the agent has used by now, estimated.
    pub fn estimate_usage(&self) -> AgentUsage {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).estimate_usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_reads_the_conversation_again() {
        let meter = UsageMeter::new(4_000, TaskShare { tokens: 20_000, turns: 100 });
        assert_eq!(meter.add_output(400, 1, 400), None);
        let usage = meter.estimate_usage();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cached_tokens), (1_000, 100, 0));
        assert_eq!(meter.add_output(40_000, 1, 0), None);
        let usage = meter.estimate_usage();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cached_tokens), (11_000, 100, 1_100));
        assert_eq!(usage.weighted_tokens(), 11_210);
    }

    #[test]
    fn a_task_that_passes_its_share_is_noticed_while_it_works() {
        let small_share = TaskShare { tokens: 5_000, turns: 1_000 };
        let meter = UsageMeter::new(4_000, small_share);
        let passed = (1..500).find_map(|turn| meter.add_output(100, 1, 10).map(|limit| (turn, limit)));
        let (turn, PassedLimit::Tokens { used, limit }) = passed.unwrap() else { panic!("{passed:?}") };
        assert!(turn < 40 && used > limit && used < limit + 200, "{passed:?}");
        assert_eq!(meter.passed_limit(), Some(PassedLimit::Tokens { used, limit }));

        let meter = UsageMeter::new(40, TaskShare { tokens: 1_000_000, turns: 3 });
        let passed: Vec<Option<PassedLimit>> = (0..4).map(|_| meter.add_output(10, 1, 10)).collect();
        assert_eq!(passed, [None, None, None, Some(PassedLimit::Turns { limit: 3 })]);
    }
}
