//! What an iteration is told. The task comes first and is never cut; everything else is short.

use alloc::{format, string::String, vec::Vec};

use crate::{
    loop_run::{
        order::LoopOrder,
        state::{Feedback, LoopState, LoopWork},
    },
    runs::settings::Settings,
    session::SessionWork,
    tasks::instructions::{BriefMaterial, InstructionBrief},
};
use tribunal_engine::text::truncate_chars;

/// The most characters of the output of one failing check.
const MAX_CHECK_CHARS: usize = 1_500;

/// Builds the brief of the next iteration.
pub(super) fn build_brief(
    order: &LoopOrder,
    settings: &Settings,
    state: &LoopState,
    work: &LoopWork,
) -> InstructionBrief {
    let iteration = state.iteration + 1;
    let position = format!("This is iteration {iteration} of at most {}", state.allowed_iterations(order));
    let notes = describe_loop(order, settings, work, &position);
    let news = describe_feedback(&state.feedback);
    InstructionBrief {
        title: format!("iteration {iteration}"),
        text: join_parts(&[order.prompt.trim_end(), &notes, &news]),
        // The session knows the task and the rules; only the number and the news are new.
        follow_up: Some(join_parts(&[
            &format!("{position}. Continue with the task."),
            &describe_next_task(work),
            &news,
        ])),
        material: list_material(&state.feedback),
        said: state.dialog.remark_lines(),
        ..InstructionBrief::default()
    }
}

fn join_parts(parts: &[&str]) -> String {
    let filled_parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    filled_parts.join("\n\n")
}

/// Describes how the loop works: what to do, where to keep notes, and how to say that the task is done.
fn describe_loop(order: &LoopOrder, settings: &Settings, work: &LoopWork, position: &str) -> String {
    let mut lines = Vec::new();
    lines.push(format!(
        "{position} of a loop over this task. Earlier iterations worked in the same directory. Do the next useful step, then end \
         your turn."
    ));
    lines.push(format!(
        "Keep notes for later iterations in {} (progress, decisions, blockers); read them first if they exist.",
        work.scratchpad
    ));
    lines.extend(Some(describe_next_task(work)).filter(|line| !line.is_empty()));
    let promise = SessionWork::Loop.tag_promise(&order.completion.promise);
    let checks = match settings.checks.as_slice() {
        [] => String::new(),
        checks => {
            let commands: Vec<String> = checks.iter().map(|check| format!("`{}`", check.command)).collect();
            format!(" and these checks pass: {}", commands.join(", "))
        }
    };
    match &order.completion.plan_file {
        Some(plan_file) => lines.push(format!(
            "Tick the boxes in {plan_file} as you complete them. The task is done when all of them are ticked{checks}. This is \
             verified."
        )),
        None => lines.push(format!(
            "Write this line in your final answer only when the whole task is done{checks}.\n{promise}\nIt is verified, so do \
             not write it to get out of the loop. If something is missing, say what, and do not write it."
        )),
    }
    lines.join("\n")
}

fn describe_next_task(work: &LoopWork) -> String {
    match (work.plan, work.next_task.as_str()) {
        (Some(plan), next_task) if !next_task.is_empty() => {
            format!("{} of {} tasks of the plan are done; the next one is: {next_task}", plan.done, plan.total)
        }
        _ => String::new(),
    }
}

/// Describes what came of the last iteration, as far as the agent has to know.
fn describe_feedback(feedback: &Feedback) -> String {
    let mut lines: Vec<String> = Vec::new();
    if !feedback.refused.is_empty() {
        lines.push(format!("You said that the task was done. It is not: {}.", feedback.refused));
    }
    for result in &feedback.failed_checks {
        lines.push(format!("A check fails: `{}` {}. Fix this first.", result.command, result.status));
    }
    if !feedback.fault.is_empty() {
        lines.push(format!("The last iteration failed: {}.", feedback.fault.trim_end_matches('.')));
    }
    if feedback.repeats {
        lines.push(String::from(
            "The last iterations said the same and changed nothing. Try another approach, or write down what blocks you.",
        ));
    }
    if !feedback.review.is_empty() {
        lines.push(String::from("A review of the changes found problems: see `review findings` in the material."));
    }
    lines.join("\n")
}

/// Lists the texts of others: they are material and not instructions.
fn list_material(feedback: &Feedback) -> Vec<BriefMaterial> {
    let mut material: Vec<BriefMaterial> = feedback
        .failed_checks
        .iter()
        .filter(|result| !result.output.trim().is_empty())
        .map(|result| BriefMaterial {
            name: format!("output of {}", result.command),
            text: keep_end(&result.output, MAX_CHECK_CHARS),
        })
        .collect();
    if !feedback.review.is_empty() {
        material.push(BriefMaterial { name: String::from("review findings"), text: feedback.review.clone() });
    }
    material
}

/// Keeps the end of an output, where tools say what failed.
fn keep_end(output: &str, max_chars: usize) -> String {
    let skipped_chars = output.chars().count().saturating_sub(max_chars);
    output.chars().skip(skipped_chars).collect()
}

/// Shortens what an agent said about an iteration to one line for users.
pub(super) fn summarize_line(text: &str) -> String {
    // The promise and the marks of the status block say nothing about the work.
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with("<promise>") && !line.starts_with("---");
    let line = text.lines().map(str::trim).find(is_text).unwrap_or_default();
    truncate_chars(line, 160)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::development::{
        checks::{CheckResult, CheckSpec, CheckStatus, CommandLine, FailureAction},
        workspace::{OpenedWorkspace, TargetBranch, WorkspaceState},
    };
    use tribunal_engine::ids::CommitId;

    fn sample_work() -> LoopWork {
        let opened = OpenedWorkspace {
            path: "/w".into(),
            base: CommitId::new("abc"),
            state: WorkspaceState::default(),
            scratchpad: ".tribunal/scratch/loop-x.md".into(),
            remarks: Vec::new(),
        };
        LoopWork::from_opened(&opened, None)
    }

    fn sample_order() -> LoopOrder {
        LoopOrder::new("Build the thing.\n", TargetBranch { name: "main".into(), created_at: None })
    }

    #[test]
    fn the_task_comes_first_and_what_is_added_is_short() {
        let settings = Settings {
            checks: alloc::vec![CheckSpec::new(CommandLine::from_shell_line("make test"))],
            ..Settings::default()
        };
        let brief = build_brief(&sample_order(), &settings, &LoopState::default(), &sample_work());
        assert!(brief.text.starts_with("Build the thing.\n\nThis is iteration 1 of at most 100"), "{}", brief.text);
        assert!(brief.text.contains("<promise>COMPLETE</promise>") && brief.text.contains("make test"));
        assert!(brief.text.len() - "Build the thing.".len() < 1_000, "{}", brief.text.len());
    }

    #[test]
    fn a_refused_promise_and_a_red_check_are_said_with_the_end_of_the_output() {
        let mut state = LoopState::default();
        state.feedback.refused = "nothing was changed".into();
        state.feedback.failed_checks.push(CheckResult {
            command: CommandLine::from_shell_line("make test"),
            status: CheckStatus::Failed { exit_code: 2 },
            on_failure: FailureAction::Block,
            output: format!("{}\nlast line", "x".repeat(5_000)),
            log: None,
            elapsed_ms: 1,
        });
        let brief = build_brief(&sample_order(), &Settings::default(), &state, &sample_work());
        assert!(brief.text.contains("You said that the task was done. It is not: nothing was changed."));
        assert!(brief.text.contains("`make test` failed with exit code 2"));
        assert!(brief.material[0].text.ends_with("last line") && brief.material[0].text.len() < 2_000);
        let follow_up = brief.follow_up.unwrap();
        assert!(follow_up.contains("It is not") && !follow_up.contains("Build the thing"), "{follow_up}");
    }
}
