//! What to do about each cause that kept a run from its goal: commands that show it, or that fix it.
//!
//! The advice follows from the recorded kind of a fault, never from the text that describes it.

use tribunal_engine::{
    failure_cause::FailureCause,
    fault::{FaultKind, FaultRemedy},
    ids::{AgentName, Key, RunId},
    text::truncate_chars,
    timestamp::Timestamp,
};

use crate::step_list::NextStep;

/// The most commands that are listed; a panel of five may fail in five ways.
const MAX_STEPS: usize = 4;

/// A longer check is cut in the explanation; its output is shown below the whole of it.
const MAX_COMMAND_CHARS: usize = 60;

/// Commands for the causes of a failure, and what to know before the run is resumed.
#[derive(Debug, Default)]
pub(crate) struct CauseAdvice {
    pub steps: Vec<NextStep>,
    /// Explains the command that resumes the run; empty if there is nothing to explain.
    pub resume_note: String,
}

/// Turns causes into commands. Several agents that failed in the same way get one command.
pub(crate) fn advise_on_causes(run_id: &RunId, causes: &[FailureCause], program_name: &str) -> CauseAdvice {
    let mut advice = CauseAdvice::default();
    let mut seen_faults: Vec<(&AgentName, &'static str)> = Vec::new();
    for cause in causes {
        match cause {
            FailureCause::Agent { agent, kind, .. } => {
                let fault_name = (agent, kind.table_row().code);
                if seen_faults.contains(&fault_name) {
                    continue;
                }
                seen_faults.push(fault_name);
                advice.add_agent_cause(run_id, cause, program_name);
            }
            FailureCause::Check { key, command, .. } => advice.add_step(NextStep::new(
                format!("{program_name} log {run_id} --key {key} --kind patch_refused"),
                format!("output of the check `{}`", truncate_chars(command, MAX_COMMAND_CHARS)),
            )),
        }
    }
    advice.steps.truncate(MAX_STEPS);
    advice
}

impl CauseAdvice {
    /// Adds a command, unless it is listed already.
    fn add_step(&mut self, next_step: NextStep) {
        if !self.steps.contains(&next_step) {
            self.steps.push(next_step);
        }
    }

    fn note_before_resuming(&mut self, resume_note: String) {
        // The first note is about the first failure, and there is room for one.
        if self.resume_note.is_empty() {
            self.resume_note = resume_note;
        }
    }

    fn add_agent_cause(&mut self, run_id: &RunId, cause: &FailureCause, program_name: &str) {
        let FailureCause::Agent { key, agent, kind, remedy, printed } = cause else { return };
        let doctor_step = || NextStep::new(format!("{program_name} doctor"), "check agents and environment");
        let transcript_step = |key: &Key| {
            NextStep::new(format!("{program_name} inspect transcript {run_id} {key}"), format!("what {agent} printed"))
        };
        match kind {
            FaultKind::NotInstalled | FaultKind::CannotStart | FaultKind::NotSignedIn => match remedy {
                Some(FaultRemedy::RunCommand { command }) => {
                    let purpose = match kind {
                        FaultKind::NotInstalled => format!("install {agent}"),
                        FaultKind::NotSignedIn => format!("sign {agent} in"),
                        _ => format!("make {agent} executable"),
                    };
                    self.add_step(NextStep::new(command.clone(), purpose));
                }
                _ => self.add_step(doctor_step()),
            },
            FaultKind::Limited { until_ms: Some(until_ms) } => {
                let reset_time = Timestamp { wall_ms: *until_ms, awake_ms: 0 }.format_utc();
                self.note_before_resuming(format!("after {reset_time} UTC, when {agent} can be used again"));
            }
            FaultKind::Limited { until_ms: None } => {
                self.note_before_resuming(format!("later; {agent} has reached its usage limit"));
            }
            FaultKind::Overloaded | FaultKind::Connection => {
                self.note_before_resuming(format!("later; {agent} could not reach its provider"));
            }
            FaultKind::NoCredit => {
                self.note_before_resuming(format!(
                    "after adding credit for {agent}; or add --reload --agent NAME to use another agent"
                ));
            }
            FaultKind::World | FaultKind::CheckoutNotReady | FaultKind::SubjectBusy => self.add_step(doctor_step()),
            FaultKind::TimedOut | FaultKind::Silent | FaultKind::NeverActive | FaultKind::NoModel => {
                if *printed && *kind != FaultKind::NoModel {
                    self.add_step(transcript_step(key));
                }
                if let Some(FaultRemedy::ChangeSetting { setting, value }) = remedy {
                    let explanation = match kind {
                        FaultKind::NoModel => format!("choose a model that {agent} has"),
                        _ => format!("give {agent} more time"),
                    };
                    let shown_value = value.as_deref().unwrap_or("VALUE");
                    self.add_step(NextStep::new(
                        format!("{program_name} resume {run_id} --reload --set {setting}={shown_value}"),
                        explanation,
                    ));
                }
            }
            FaultKind::Exited { .. }
            | FaultKind::Killed { .. }
            | FaultKind::Flood
            | FaultKind::Malformed
            | FaultKind::Overflow
            | FaultKind::Refused
            | FaultKind::Denied
            | FaultKind::Rejected { .. }
            | FaultKind::Curtailed => {
                self.add_step(if *printed { transcript_step(key) } else { doctor_step() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent_cause(agent: &str, kind: FaultKind, remedy: Option<FaultRemedy>) -> FailureCause {
        let key = Key::new("round-1/review/adversarial/again");
        FailureCause::Agent { key, agent: AgentName::new(agent), kind, remedy, printed: true }
    }

    fn describe(causes: &[FailureCause]) -> Vec<String> {
        let advice = advise_on_causes(&RunId::new("plan-1"), causes, "tribunal");
        let step_texts = advice.steps.iter().map(|step| format!("{} ({})", step.command, step.explanation));
        step_texts.chain([advice.resume_note.clone()].into_iter().filter(|note| !note.is_empty())).collect()
    }

    #[test]
    fn the_advice_follows_from_the_cause() {
        let run_command = |command: &str| Some(FaultRemedy::RunCommand { command: command.into() });
        let set_value = |setting: &str, value: Option<&str>| {
            Some(FaultRemedy::ChangeSetting { setting: setting.into(), value: value.map(String::from) })
        };
        let transcript = "tribunal inspect transcript plan-1 round-1/review/adversarial/again (what mine printed)";
        for (kind, remedy, expected) in [
            (FaultKind::Malformed, None, &[transcript][..]),
            (FaultKind::Exited { code: 1 }, None, &[transcript]),
            (FaultKind::NotInstalled, run_command("npm install x"), &["npm install x (install mine)"]),
            (FaultKind::CannotStart, run_command("chmod +x /a"), &["chmod +x /a (make mine executable)"]),
            (FaultKind::NotSignedIn, run_command("codex login"), &["codex login (sign mine in)"]),
            (FaultKind::NotInstalled, None, &["tribunal doctor (check agents and environment)"]),
            (
                FaultKind::TimedOut,
                set_value("tasks.fixer_timeout", Some("1800")),
                &[transcript, "tribunal resume plan-1 --reload --set tasks.fixer_timeout=1800 (give mine more time)"],
            ),
            (
                FaultKind::NoModel,
                set_value("agents.mine.model", None),
                &["tribunal resume plan-1 --reload --set agents.mine.model=VALUE (choose a model that mine has)"],
            ),
            (
                FaultKind::Limited { until_ms: Some(1_794_706_165_000) },
                None,
                &["after 2026-11-15 01:29:25 UTC, when mine can be used again"],
            ),
            (FaultKind::Connection, None, &["later; mine could not reach its provider"]),
        ] {
            assert_eq!(describe(&[agent_cause("mine", kind.clone(), remedy)]), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_rejected_fix_leads_to_the_output_of_its_check() {
        let cause = FailureCause::Check {
            key: Key::new("round-1/fix-1/fix/1"),
            command: "make test".into(),
            findings: Vec::new(),
        };
        let expected =
            "tribunal log plan-1 --key round-1/fix-1/fix/1 --kind patch_refused (output of the check `make test`)";
        assert_eq!(describe(&[cause.clone(), cause]), [expected]);
    }

    #[test]
    fn agents_that_failed_alike_get_one_command() {
        let causes = ["mine", "mine", "other"].map(|agent| agent_cause(agent, FaultKind::Malformed, None));
        assert_eq!(describe(&causes).len(), 2);
    }
}
