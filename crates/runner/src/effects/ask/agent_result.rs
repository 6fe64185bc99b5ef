//! Reads what an ended agent left behind: its answer, its fault and its patch.
//!
//! Whether the agent did its work is read from what it printed, never from its exit code alone.

use std::{fs, io};

use tribunal_agents::{
    answer::{self, ParsedAnswer},
    clients::{AgentFacts, DenialRemedy},
    driver::{DecodedOutput, DrivenAgent, FinishedProcess, LocalClock},
};
use tribunal_engine::{
    fault::{Fault, FaultKind, FaultRemedy},
    files::{Patch, StrayEdit},
    ids::{AgentName, Hash},
    limits::AgentUsage,
    text::truncate_chars,
};
use tribunal_supervise::{ExitReason, OutputLimits, ProcessOutcome};
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    runs::effect::{AskOutcome, FailedTask},
    tasks::{
        brief::{AgentReply, AgentTask, AnswerContent, WorkspaceKind},
        output_similarity::{OutputSimilarity, compare_outputs},
        purpose::ExpectedAnswer,
    },
};

use super::{
    AgentWorkspace, choose_conversation, questions,
    usage_meter::{PassedLimit, UsageMeter},
};
use crate::{
    effects::{EffectContext, PerformedEffect, current_wall_ms},
    landing::merging,
    masking::Masker,
    workspaces::{TaskWorkspace, development::contents::StateReading, hash_changes},
};

/// No timeout can be set to more than a day.
const MAX_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;

/// The most denials of a turn that are recorded. An agent can be denied a thousand commands, and a few say why.
const MAX_DENIALS: usize = 20;

/// What an agent was asked to do.
#[derive(Clone, Copy)]
pub(super) struct AgentRequest<'a> {
    pub agent: &'a DrivenAgent,
    pub task: &'a AgentTask,
    pub usage_meter: &'a UsageMeter,
    /// How often the agent was asked before and never finished.
    pub unfinished_attempts: u32,
}

/// What an agent left behind outside of its workspace.
pub(super) struct AgentTraces {
    pub process_end: ProcessOutcome,
    /// Edits of the user's project.
    pub strayed: Vec<StrayEdit>,
}

/// Reads the result of an ended process. The output is parsed as it was printed: the journal masks the outcome, and a mask
/// inside an answer could break its syntax.
pub(super) fn read_agent_result(
    context: &EffectContext,
    request: AgentRequest<'_>,
    agent_workspace: &AgentWorkspace,
    traces: AgentTraces,
) -> PerformedEffect<AskOutcome> {
    let AgentTraces { process_end, strayed: strayed_files } = traces;
    let AgentRequest { agent: driven_agent, task: agent_task, .. } = request;
    let (stdout_text, stderr_text) = (process_end.stdout.to_text(), process_end.stderr.to_text());
    let exit_code = if let ExitReason::Exited(exit_code) = process_end.exit_reason { Some(exit_code) } else { None };
    let decoded = decode_process_output(request, exit_code, &stdout_text, &stderr_text);
    let stderr_text = context.masker.mask(&stderr_text).into_owned();
    let fault = detect_fault(context, request, &process_end, &stderr_text, &decoded);
    let usage = calculate_usage(request, &decoded, fault.as_ref());
    // What the agent left in its workspace counts whether or not it succeeded.
    let development = read_development_state(context, request, agent_workspace);
    let (workspace_state, workspace_fault) = match development {
        Ok(reading) => (reading, None),
        Err(fault) => (None, Some(fault)),
    };
    let fault = fault.or(workspace_fault);
    let masked_stdout = context.masker.mask(&stdout_text).into_owned();
    if let Some(fault) = fault {
        let output = format!("{masked_stdout}\n--- standard error ---\n{stderr_text}").into_bytes();
        let mut failed_result = build_failed_result(fault, usage, strayed_files, vec![output]);
        if let AskOutcome::Failed(failed_task) = &mut failed_result.reply {
            failed_task.workspace = workspace_state.map(|reading| Box::new(reading.state));
        }
        return failed_result;
    }
    let parsed_answer = parse_expected_answer(&decoded.answer_text, agent_task.expects);
    let mut blobs = vec![masked_stdout.into_bytes()];
    let patch = match agent_workspace {
        AgentWorkspace::Copy { workspace } if agent_task.place == WorkspaceKind::Private => {
            match extract_patch(context, workspace, &mut blobs) {
                Ok(patch) => patch,
                // The agent itself broke the workspace it was given.
                Err(cause) => {
                    let fault = Fault::new(
                        FaultKind::Malformed,
                        format!("agent `{}` left an unreadable workspace: {cause}", driven_agent.agent_spec.name),
                    );
                    return build_failed_result(fault, usage, strayed_files, blobs);
                }
            }
        }
        AgentWorkspace::Copy { .. } | AgentWorkspace::Development { .. } => None,
    };
    let mut remarks = parsed_answer.remarks;
    let workspace_state = workspace_state.map(|reading| {
        remarks.extend(reading.remarks);
        Box::new(reading.state)
    });
    remarks.extend(decoded.remarks);
    remarks.extend(describe_failure_after_answer(&driven_agent.agent_spec.name, exit_code));
    remarks.extend(describe_unkillable_processes(process_end.survivors));
    let reply = AgentReply {
        content: add_denials(parsed_answer.content, decoded.denied),
        remarks,
        usage,
        patch,
        minutes: Box::new(parsed_answer.minutes),
        // The caller fills in the hash of the prompt, which it alone knows.
        prompt: Hash::new(""),
        endpoint: None,
        repeats: measure_repetition(context, &agent_task.recent, &blobs[0]),
        output: context.memory.recent_outputs.add_output(&blobs[0]),
        strayed: strayed_files,
        session: decoded.session.map(Box::new),
        workspace: workspace_state,
    };
    PerformedEffect { reply: AskOutcome::Answered(reply), blobs }
}

/// Reads what the agent left in its workspace for development, if it worked in one and the task asks for that.
fn read_development_state(
    context: &EffectContext,
    request: AgentRequest<'_>,
    agent_workspace: &AgentWorkspace,
) -> Result<Option<StateReading>, Fault> {
    let (AgentWorkspace::Development { workspace, .. }, Some(collect)) = (agent_workspace, &request.task.collect)
    else {
        return Ok(None);
    };
    let reading = workspace.read_state(collect, &context.masker);
    reading.map(Some).map_err(|cause| {
        let agent_name = &request.agent.agent_spec.name;
        Fault::new(FaultKind::Malformed, format!("agent `{agent_name}` left an unreadable workspace: {cause}"))
    })
}

/// Reads the answer that the task expects.
fn parse_expected_answer(answer_text: &str, expects: ExpectedAnswer) -> ParsedAnswer {
    let mut parsed_answer = answer::read_answer(answer_text, expects);
    if expects == ExpectedAnswer::Question {
        parsed_answer.content = questions::read_question(answer_text, parsed_answer.content);
    }
    parsed_answer
}

/// Adds the client's denials to the report of a turn. Other answers have them among their remarks only.
fn add_denials(mut content: AnswerContent, denied: Vec<String>) -> AnswerContent {
    if let AnswerContent::Turn(turn_report) = &mut content {
        turn_report.denied = denied.into_iter().take(MAX_DENIALS).collect();
    }
    content
}

/// Decodes what the process printed, in the format of its client.
fn decode_process_output(
    request: AgentRequest<'_>,
    exit_code: Option<i32>,
    stdout_text: &str,
    stderr_text: &str,
) -> DecodedOutput {
    // Limits are often reported as a local time, so the decoder needs the clock and the time zone.
    let clock = LocalClock { now_ms: current_wall_ms(), time_zone: jiff::tz::TimeZone::system() };
    request.agent.decode_output(&FinishedProcess {
        exit_code,
        stdout: stdout_text,
        stderr: stderr_text,
        clock: &clock,
        session_mode: choose_conversation(request.task, request.unfinished_attempts),
    })
}

/// Returns what the client says it has used, or an estimate.
fn calculate_usage(request: AgentRequest<'_>, decoded: &DecodedOutput, fault: Option<&Fault>) -> AgentUsage {
    // An agent that could not even begin was paid nothing.
    let is_environment_fault = fault.is_some_and(Fault::is_environment);
    let did_nothing =
        !decoded.did_work && fault.is_some() && (is_environment_fault || request.agent.client().is_some());
    // A client that reports no usage still gets an estimate, so that a budget cannot be bypassed. So does one that was ended
    // before it could report what it has used.
    let estimated_usage = request.usage_meter.estimate_usage();
    let is_incomplete = request.usage_meter.passed_limit().is_some()
        && estimated_usage.weighted_tokens() > decoded.usage.weighted_tokens();
    if (decoded.usage == AgentUsage::default() && !did_nothing) || is_incomplete {
        return estimated_usage;
    }
    decoded.usage
}

/// Makes the result of a task that failed. The first blob is what the agent printed.
fn build_failed_result(
    fault: Fault,
    usage: AgentUsage,
    strayed_files: Vec<StrayEdit>,
    blobs: Vec<Vec<u8>>,
) -> PerformedEffect<AskOutcome> {
    let output_hash = blobs.first().map(|output| Hash::digest_of(output));
    let failed_task = FailedTask {
        fault,
        usage,
        output: output_hash,
        prompt: None,
        endpoint: None,
        strayed: strayed_files,
        workspace: None,
    };
    PerformedEffect { reply: AskOutcome::Failed(failed_task), blobs }
}

/// Describes how the process failed after its answer. The answer counts all the same, but the user should know.
fn describe_failure_after_answer(agent_name: &AgentName, exit_code: Option<i32>) -> Option<String> {
    match exit_code {
        Some(0) => None,
        Some(exit_code) => Some(format!("{agent_name} exited with code {exit_code} after its answer")),
        None => Some(format!("{agent_name} answered, but did not exit on its own")),
    }
}

/// Returns what went wrong, if anything did.
fn detect_fault(
    context: &EffectContext,
    request: AgentRequest<'_>,
    process_end: &ProcessOutcome,
    stderr_text: &str,
    decoded: &DecodedOutput,
) -> Option<Fault> {
    let driven_agent = request.agent;
    if decoded.answer_text.len() > context.settings.tasks.max_answer_bytes() {
        let detail = format!("agent `{}` {}", driven_agent.agent_spec.name, describe_long_answer(context));
        return Some(Fault::new(FaultKind::Flood, detail));
    }
    if let Some(passed_limit) = request.usage_meter.passed_limit().filter(|_| !decoded.is_finished) {
        let limit_text = match passed_limit {
            PassedLimit::Tokens { used, limit } => {
                format!(
                    "used about {used} tokens, more than its share of {limit} (`limits.task_tokens`, `limits.max_tokens`)"
                )
            }
            PassedLimit::Turns { limit } => format!("took more than {limit} turns (`limits.task_turns`)"),
        };
        let detail = format!("agent `{}` {limit_text} and was stopped", driven_agent.agent_spec.name);
        return Some(Fault::new(FaultKind::Curtailed, detail));
    }
    // The client reported a complete answer, so what happened to its process afterwards does not matter.
    if decoded.is_finished && decoded.fault.is_none() && !matches!(process_end.exit_reason, ExitReason::Stopped) {
        return None;
    }
    let printed_nothing = !decoded.did_work && process_end.stdout.total_bytes() == 0;
    let fault_kind = match process_end.exit_reason {
        // The client's own error says more than an exit code, or than a timeout that ended its retries.
        ExitReason::Exited(_) | ExitReason::Killed(_) | ExitReason::TimedOut | ExitReason::Silent
            if decoded.fault.is_some() =>
        {
            let mut fault = decoded.fault.clone()?;
            let remedy_text =
                suggest_remedy(driven_agent, &fault.kind).map(|remedy| format!("; {remedy}")).unwrap_or_default();
            fault.detail = format!("agent `{}`: {}{remedy_text}", driven_agent.agent_spec.name, fault.detail);
            fault.instant = !decoded.did_work;
            fault.remedy = find_fault_remedy(context, request, &fault.kind);
            return Some(fault);
        }
        ExitReason::Exited(0) => return None,
        // 143 is the exit code of a process that was asked to stop with SIGTERM.
        ExitReason::Exited(143) => FaultKind::Killed { signal: 15 },
        ExitReason::Exited(code) => FaultKind::Exited { code },
        ExitReason::Killed(signal) => FaultKind::Killed { signal },
        ExitReason::TimedOut => FaultKind::TimedOut,
        ExitReason::Silent if printed_nothing => FaultKind::NeverActive,
        ExitReason::Silent => FaultKind::Silent,
        ExitReason::Flooded => FaultKind::Flood,
        ExitReason::Lost | ExitReason::Stopped => FaultKind::Killed { signal: 9 },
    };
    let is_ended_by_us = matches!(process_end.exit_reason, ExitReason::TimedOut | ExitReason::Silent);
    // What a client prints to its error output when it is ended is about its end, not about what it was doing.
    let last_words = match driven_agent.client() {
        Some(_) if is_ended_by_us => decoded.answer_text.as_str(),
        _ => stderr_text,
    };
    let detail = describe_failure(context, request, process_end, last_words);
    let remedy = find_fault_remedy(context, request, &fault_kind);
    Some(Fault {
        instant: !decoded.did_work && matches!(process_end.exit_reason, ExitReason::Exited(_)),
        ..Fault::new(fault_kind, detail).with_remedy(remedy)
    })
}

/// Returns the command or the setting that is known to help against a fault.
fn find_fault_remedy(
    context: &EffectContext,
    request: AgentRequest<'_>,
    fault_kind: &FaultKind,
) -> Option<FaultRemedy> {
    let tasks = &context.settings.tasks;
    // Twice the time is a value to begin with; the user knows better.
    let double_time = |setting: &str, timeout_ms: u64| FaultRemedy::ChangeSetting {
        setting: setting.to_string(),
        value: Some((timeout_ms.saturating_mul(2) / 1000).min(MAX_TIMEOUT_SECONDS).to_string()),
    };
    Some(match fault_kind {
        FaultKind::NotSignedIn => {
            FaultRemedy::RunCommand { command: request.agent.client()?.facts.sign_in_hint.to_string() }
        }
        FaultKind::NoModel => FaultRemedy::ChangeSetting {
            setting: format!("agents.{}.model", request.agent.agent_spec.name),
            value: None,
        },
        FaultKind::TimedOut => {
            let role = request.task.brief.as_review()?.role;
            let setting = match role {
                AgentRole::Fixer => "tasks.fixer_timeout",
                AgentRole::Party => "tasks.party_timeout",
                AgentRole::Elicitation => "tasks.elicitation_timeout",
                _ => "tasks.reviewer_timeout",
            };
            double_time(setting, context.order.as_review()?.timeout_ms(role))
        }
        FaultKind::Silent | FaultKind::NeverActive => double_time("tasks.idle_timeout", tasks.idle_timeout_ms),
        _ => return None,
    })
}

/// Returns what the user can do about a fault, if anything is known to help.
fn suggest_remedy(driven_agent: &DrivenAgent, fault_kind: &FaultKind) -> Option<String> {
    let AgentFacts { key_variables: keys, sign_in_hint: sign_in, denial_remedy: when_denied, .. } =
        driven_agent.client()?.facts;
    let agent_name = &driven_agent.agent_spec.name;
    Some(match fault_kind {
        FaultKind::NotSignedIn => match keys.first() {
            Some(key) => format!("sign in with `{sign_in}`, or replace the key in {}", key.name),
            None => format!("sign in with `{sign_in}`"),
        },
        FaultKind::NoCredit => "add credit, or choose another agent in `agents.use`".into(),
        FaultKind::NoModel => format!("set `agents.{agent_name}.model` to a model that exists"),
        FaultKind::Denied => match when_denied {
            DenialRemedy::AllowTools => format!("allow the tools it needs in `agents.{agent_name}.allow`"),
            DenialRemedy::Bypass => {
                format!("if you accept the risk, turn off its permission checks with `agents.{agent_name}.bypass`")
            }
        },
        FaultKind::Overflow => "review less at once, with `--section` or fewer files".into(),
        _ => return None,
    })
}

/// Returns how much of an output repeats an earlier one, in thousandths; the highest value counts. An earlier output that
/// cannot be read any more does not count as a repetition.
fn measure_repetition(context: &EffectContext, recent: &[Hash], output: &[u8]) -> Option<u16> {
    if recent.is_empty() {
        return None;
    }
    let current_text = String::from_utf8_lossy(output);
    let mut highest_permille = 0;
    for earlier_hash in recent {
        let Some(earlier_output) = context.memory.recent_outputs.read_output(&context.project, earlier_hash) else {
            continue;
        };
        highest_permille =
            highest_permille.max(match compare_outputs(&current_text, &String::from_utf8_lossy(&earlier_output)) {
                OutputSimilarity::Equal => 1000,
                OutputSimilarity::Similar { permille } | OutputSimilarity::Different { permille } => permille,
            });
    }
    Some(highest_permille)
}

/// Reports processes that could not be ended, because they belong to another user, for example.
fn describe_unkillable_processes(process_count: usize) -> Option<String> {
    (process_count > 0)
        .then(|| format!("{process_count} of its processes could not be killed and may still be running"))
}

fn describe_long_answer(context: &EffectContext) -> String {
    let max_megabytes = context.settings.tasks.max_answer_megabytes;
    format!("was stopped: its answer is longer than {max_megabytes} MB (`tasks.max_answer_mb`)")
}

fn describe_failure(
    context: &EffectContext,
    request: AgentRequest<'_>,
    process_end: &ProcessOutcome,
    last_words: &str,
) -> String {
    let AgentRequest { agent: driven_agent, task: agent_task, .. } = request;
    let ending_text = match process_end.exit_reason {
        ExitReason::Exited(code) => format!("exited with code {code}"),
        ExitReason::Killed(signal) => format!("was killed by signal {signal}"),
        ExitReason::TimedOut => format!("timed out after {} s", agent_task.timeout_ms / 1000),
        ExitReason::Silent => {
            let seconds = context.settings.tasks.idle_timeout_ms / 1000;
            format!("printed nothing for {seconds} s (`tasks.idle_timeout`)")
        }
        // Its output was not too long as such, so its answer was.
        ExitReason::Flooded if process_end.stdout.total_bytes() < OutputLimits::default().max_stream_bytes => {
            describe_long_answer(context)
        }
        ExitReason::Flooded => {
            format!(
                "printed too much output ({} MB)",
                process_end.stdout.total_bytes().max(process_end.stderr.total_bytes()) >> 20
            )
        }
        ExitReason::Lost | ExitReason::Stopped => "was lost: its supervisor process was killed".to_string(),
    };
    // The last line usually is the one that says what went wrong.
    let last_line = last_words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let stderr_suffix =
        if last_line.is_empty() { String::new() } else { format!(": {}", truncate_chars(last_line.trim(), 200)) };
    let survivor_suffix = describe_unkillable_processes(process_end.survivors)
        .map(|survivor_text| format!("; {survivor_text}"))
        .unwrap_or_default();
    format!("agent `{}` {ending_text}{stderr_suffix}{survivor_suffix}", driven_agent.agent_spec.name)
}

fn extract_patch(
    context: &EffectContext,
    workspace: &TaskWorkspace,
    blobs: &mut Vec<Vec<u8>>,
) -> io::Result<Option<Patch>> {
    let changed_files = workspace.changed_files()?;
    if changed_files.is_empty() {
        return Ok(None);
    }
    let mut diff_text = String::new();
    for (relative_path, current_hash) in &changed_files {
        let new_path = workspace.tree_dir().join(relative_path);
        // Reading a link would show the file it leads to.
        let is_regular_file = fs::symlink_metadata(&new_path).is_ok_and(|metadata| metadata.is_file());
        // A base that is not text cannot be shown, but its change is part of the patch hash all the same.
        let base_text =
            workspace.read_base(relative_path).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
        match (current_hash, if is_regular_file { fs::read_to_string(&new_path).ok() } else { None }) {
            (Some(_), Some(new_text)) => {
                diff_text.push_str(&render_masked_patch(
                    &context.masker,
                    relative_path,
                    base_text.as_deref(),
                    &new_text,
                ));
            }
            _ => diff_text.push_str(&format!("{relative_path}: deleted, or no longer text\n")),
        }
    }
    // The paths are not masked yet.
    let diff_bytes = context.masker.mask(&diff_text).into_owned().into_bytes();
    let patch = Patch {
        hash: hash_changes(&changed_files),
        files: changed_files.keys().cloned().collect(),
        diff: Hash::digest_of(&diff_bytes),
    };
    blobs.push(diff_bytes);
    Ok(Some(patch))
}

/// Renders the change of a file between its masked texts. A diff that is masked afterwards can show the middle of a key, without
/// the first line that tells it.
fn render_masked_patch(masker: &Masker, relative_path: &str, base_text: Option<&str>, new_text: &str) -> String {
    let (masked_base, masked_text) = (base_text.map(|base_text| masker.mask(base_text)), masker.mask(new_text));
    let patch_text = merging::render_patch(relative_path, masked_base.as_deref(), Some(&masked_text));
    if patch_text.is_empty() && base_text != Some(new_text) {
        return format!("{relative_path}: only masked text has changed\n");
    }
    patch_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_no_part_of_a_key() {
        let marker = |word: &str| format!("-----{word} {} KEY-----", "PRIVATE");
        let key_line = |letter: &str| letter.repeat(64);
        let key_lines: Vec<String> = ["Ab", "Cd", "Ef", "Gh", "Ij", "Kl"].iter().map(|pair| pair.repeat(32)).collect();
        let base_text = format!("{}\n{}\n{}\nport: 1\n", marker("BEGIN"), key_lines.join("\n"), marker("END"));
        let masker = Masker::new([]);
        // The change is near the end of the key, so the diff does not show where the key begins.
        let diff = render_masked_patch(&masker, "key.txt", Some(&base_text), &base_text.replace("port: 1", "port: 2"));
        assert!(diff.contains("-port: 1\n+port: 2\n") && diff.contains("@@ -6,4 +6,4 @@"), "{diff}");
        assert!(!diff.contains("KlKl"), "{diff}");
        let changed_key = base_text.replace(&key_lines[3], &key_line("Z"));
        let diff = render_masked_patch(&masker, "key.txt", Some(&base_text), &changed_key);
        assert_eq!(diff, "key.txt: only masked text has changed\n");
    }

    #[test]
    fn a_turn_records_what_its_client_denied() {
        let denied: Vec<String> = (0..30).map(|number| format!("Bash step {number}")).collect();
        let turn = parse_expected_answer("I could not run the tests.", ExpectedAnswer::Turn).content;
        let AnswerContent::Turn(report) = add_denials(turn, denied.clone()) else { panic!() };
        assert_eq!(report.denied, denied[..MAX_DENIALS]);
        let text = parse_expected_answer("No.", ExpectedAnswer::Text).content;
        assert_eq!(add_denials(text.clone(), denied), text);
    }
}
