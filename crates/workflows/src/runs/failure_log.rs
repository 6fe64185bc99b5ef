//! Collects why tasks of a run came to nothing, for its summary.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::{
    review::event::ReviewEvent,
    runs::{
        effect::{AskAgent, AskOutcome, Effect, FailedTask, Reply},
        types::{RunEvent, find_event},
    },
    tasks::brief::AnswerContent,
};
use tribunal_engine::{
    failure_cause::FailureCause,
    fault::FaultKind,
    files::PatchRefusal,
    ids::{AgentName, FindingId, Key},
};

/// Collects causes from a run's entries, in their order. A task that succeeds later leaves no cause behind.
#[derive(Clone, Debug, Default)]
pub struct FailureLog {
    causes: Vec<FailureCause>,
    /// The agents of the calls that are under way.
    asked_agents: BTreeMap<Key, AgentName>,
}

impl FailureLog {
    pub fn apply_event(&mut self, event: &RunEvent) {
        match event {
            // The user has resumed the run, so what went wrong before counts as fixed.
            RunEvent::RunResumed { .. } => *self = FailureLog::default(),
            RunEvent::EffectStarted { key, effect: Effect::Ask(AskAgent { task, .. }), .. } => {
                self.asked_agents.insert(key.clone(), task.agent.clone());
            }
            RunEvent::EffectFinished { key, reply: Reply::Ask(outcome), .. } => self.apply_outcome(key, outcome),
            event => find_event::<ReviewEvent>(event).into_iter().for_each(|event| self.apply_review_event(event)),
        }
    }

    fn apply_review_event(&mut self, event: &ReviewEvent) {
        match event {
            // Another stage begins: the run got over what failed before. Only rejected fixes still matter.
            ReviewEvent::RoundStarted { .. } | ReviewEvent::FixersDealt { wave: 0 | 1, .. } => {
                self.causes.retain(|cause| matches!(cause, FailureCause::Check { .. }));
            }
            ReviewEvent::PatchRefused { key, findings, why: PatchRefusal::Check { command, .. } } => {
                self.remove_checks(findings);
                self.causes.push(FailureCause::Check {
                    key: key.clone(),
                    command: command.clone(),
                    findings: findings.clone(),
                });
            }
            ReviewEvent::PatchLanded { findings, .. } => self.remove_checks(findings),
            _ => {}
        }
    }

    fn apply_outcome(&mut self, ask_key: &Key, outcome: &AskOutcome) {
        // A task that was only postponed says nothing new about its agent.
        if matches!(outcome, AskOutcome::Postponed(_)) {
            return;
        }
        let agent = self.asked_agents.remove(ask_key).unwrap_or_else(|| AgentName::new(""));
        // Every attempt at a task replaces what is known of the earlier ones.
        let task_key = ask_key.task_key();
        self.causes.retain(|cause| !matches!(cause, FailureCause::Agent { key, .. } if key.task_key() == task_key));
        let key = ask_key.clone();
        match outcome {
            AskOutcome::Failed(FailedTask { fault, output, .. }) => self.causes.push(FailureCause::Agent {
                key,
                agent,
                kind: fault.kind.clone(),
                remedy: fault.remedy.clone(),
                printed: output.is_some(),
            }),
            AskOutcome::Answered(reply) if matches!(reply.content, AnswerContent::Unreadable { .. }) => {
                self.causes.push(FailureCause::Agent {
                    key,
                    agent,
                    kind: FaultKind::Malformed,
                    remedy: None,
                    printed: true,
                });
            }
            AskOutcome::Answered(_) | AskOutcome::Postponed(_) => {}
        }
    }

    fn remove_checks(&mut self, fixed_findings: &[FindingId]) {
        let is_covered = |findings: &[FindingId]| findings.iter().all(|finding| fixed_findings.contains(finding));
        self.causes.retain(|cause| !matches!(cause, FailureCause::Check { findings, .. } if is_covered(findings)));
    }

    /// Returns the causes that are left. A rejected fix no longer matters once none of its findings needs one.
    pub fn remaining_causes(&self, needs_fix: impl Fn(FindingId) -> bool) -> Vec<FailureCause> {
        let still_matters = |cause: &&FailureCause| match cause {
            FailureCause::Agent { .. } => true,
            FailureCause::Check { findings, .. } => findings.iter().any(|finding| needs_fix(*finding)),
        };
        self.causes.iter().filter(still_matters).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::review::review_keys::ReviewKeys;
    use tribunal_engine::{effect::Sleep, fault::Fault, ids::Hash};

    fn failed(key: &Key, kind: FaultKind) -> RunEvent {
        let outcome = AskOutcome::Failed(FailedTask {
            fault: Fault::new(kind, "failed"),
            usage: Default::default(),
            output: Some(Hash::new("o")),
            prompt: None,
            endpoint: None,
            strayed: Vec::new(),
            workspace: None,
        });
        RunEvent::EffectFinished { key: key.clone(), segment: 1, reply: Reply::Ask(outcome) }
    }

    fn rejected(findings: &[FindingId]) -> RunEvent {
        RunEvent::from_workflow(ReviewEvent::PatchRefused {
            key: Key::for_fix_iteration(1, 1).fixer_key(1),
            findings: findings.to_vec(),
            why: PatchRefusal::Check { command: "make test".into(), output: "red".into() },
        })
    }

    fn collect(events: &[RunEvent]) -> Vec<FailureCause> {
        let mut failure_log = FailureLog::default();
        events.iter().for_each(|event| failure_log.apply_event(event));
        failure_log.remaining_causes(|_| true)
    }

    #[test]
    fn the_last_attempt_at_a_task_counts() {
        let task_key = Key::for_round(1).child_key("review").child_key("adversarial");
        let causes = collect(&[
            failed(&task_key, FaultKind::TimedOut),
            failed(&task_key.second_try(), FaultKind::Exited { code: 1 }),
        ]);
        let [FailureCause::Agent { key, kind, printed: true, .. }] = causes.as_slice() else { panic!("{causes:?}") };
        assert_eq!((key, kind), (&task_key.second_try(), &FaultKind::Exited { code: 1 }));
    }

    #[test]
    fn a_new_stage_or_a_resume_forgets_failed_agents_and_only_a_resume_forgets_checks() {
        let finding = FindingId(1);
        let failures = [failed(&Key::for_round(1).freeze_key(), FaultKind::Silent), rejected(&[finding])];
        let with_event = |event: RunEvent| collect(&[failures.to_vec(), vec![event]].concat()).len();
        assert_eq!(collect(&failures).len(), 2);
        assert_eq!(with_event(RunEvent::from_workflow(ReviewEvent::RoundStarted { round: 2, of: 3, why: None })), 1);
        assert_eq!(with_event(RunEvent::RunResumed { life: 2 }), 0);
        let landed = ReviewEvent::PatchLanded { key: Key::for_end(), findings: vec![finding], lines: 1 };
        let landed = RunEvent::from_workflow(landed);
        assert_eq!(with_event(landed), 1);
        let sleep = RunEvent::EffectStarted {
            key: Key::for_end(),
            segment: 1,
            fingerprint: Hash::new(""),
            effect: Effect::Sleep(Sleep { ms: 1 }),
        };
        assert_eq!(with_event(sleep), 2);
    }

    #[test]
    fn a_rejected_fix_matters_only_while_a_finding_needs_one() {
        let mut failure_log = FailureLog::default();
        failure_log.apply_event(&rejected(&[FindingId(1), FindingId(2)]));
        assert_eq!(failure_log.remaining_causes(|finding| finding == FindingId(2)).len(), 1);
        assert_eq!(failure_log.remaining_causes(|_| false), []);
    }
}
