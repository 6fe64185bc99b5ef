//! `tribunal inspect …`: shows what Tribunal reads from a file or from an agent's output, and why.

mod epics;
mod menu;
mod project;
mod response;
mod sprint;
mod story;
mod transcript;

/// The documents, of which the test of the schemas makes these.
#[cfg(test)]
pub(super) use {
    epics::EpicsReport, menu::MenuReport, project::ProjectReport, response::ResponseReport, sprint::SprintFileReport,
    story::StoryFileReport,
};

use std::{
    fs,
    io::{Read, Write, stdin, stdout},
    path::{Path, PathBuf},
};

use tribunal_agents::answer::{AnswerKind, ParsedAnswer, parse_answer};
use tribunal_bmad::CONFIG_PATH;
use tribunal_report::{clean_block, escape_line};
use tribunal_workflows::{
    findings::finding::Evidence,
    tasks::{
        brief::AnswerContent, instructions::AgentQuestion, party_minutes::PartyMinutes, status_report::WorkStatus,
    },
};

use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, InspectionDocument},
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    settings::{self, ReadMode, SettingLayer, SettingSources},
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum InspectCommand {
    /// Show the findings in an agent's answer
    Findings {
        /// File with the answer; `-` for standard input
        file: PathBuf,
    },
    /// Show the effective settings and where each comes from, or what one file sets
    Settings {
        /// Settings file to read on its own
        file: Option<PathBuf>,
        /// Include settings that this version accepts but does not use
        #[arg(long)]
        all: bool,
    },
    /// Show how an agent's answer is parsed
    Response {
        /// File with the answer; `-` for standard input
        file: PathBuf,
        /// Parse it as raw output of this agent or driver: final message, session, usage, faults
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Parse it as a fixer's answer: claims about findings
        #[arg(long)]
        fixes: bool,
        /// Parse it as a challenger's answer: a verdict on each finding
        #[arg(long, conflicts_with = "fixes")]
        verdicts: bool,
    },
    /// Show the menus and questions in an agent's text, and what only looks like one; exits with 3 without a menu
    Menu {
        /// File with the text; `-` for standard input
        file: PathBuf,
    },
    /// Show epics and stories with dependencies and complexity
    Epics(epics::InspectEpicsArguments),
    /// Show how each line of the board is read
    Sprint(sprint::InspectSprintArguments),
    /// Show the status, tasks, criteria, files and follow-ups in a story file; exits with 3 if it is unusable
    Story {
        /// Story file; `-` for standard input
        file: PathBuf,
    },
    /// Show the installed BMAD, how its steps are run and the project's progress; exits with 3 if a file is broken
    Project(project::InspectProjectArguments),
    /// Show what an agent printed during a run, and how it was parsed
    Transcript(transcript::InspectTranscriptArguments),
}

pub(crate) fn run(inspect_command: InspectCommand, context: &CommandContext) -> Result<u8, UserError> {
    match inspect_command {
        InspectCommand::Findings { file: input_file } => inspect_answer(&input_file, AnswerKind::Findings, context),
        InspectCommand::Response { file: input_file, agent, fixes, verdicts } => {
            let expected_content = match (fixes, verdicts) {
                (true, _) => AnswerKind::Fixes,
                (_, true) => AnswerKind::Verdicts,
                (false, false) => AnswerKind::Findings,
            };
            // With an agent, the file is its raw output, from which the answer has to be extracted first.
            match agent {
                Some(agent) => response::run(&agent, &read_input(&input_file, context)?, expected_content, context),
                None => inspect_answer(&input_file, expected_content, context),
            }
        }
        InspectCommand::Menu { file: input_file } => menu::run(&input_file, context),
        InspectCommand::Epics(arguments) => epics::run(&arguments, context),
        InspectCommand::Sprint(arguments) => sprint::run(&arguments, context),
        InspectCommand::Story { file: input_file } => story::run(&input_file, context),
        InspectCommand::Project(arguments) => project::run(&arguments, context),
        InspectCommand::Transcript(arguments) => transcript::run(&arguments, context),
        InspectCommand::Settings { file: Some(input_file), .. } => inspect_settings_file(&input_file, context),
        InspectCommand::Settings { file: None, all: show_all } => inspect_settings(show_all, context),
    }
}

/// Inspects a story's file for `tribunal story KEY`, which shows the same.
pub(super) fn inspect_story(story_file: &Path, context: &CommandContext) -> Result<u8, UserError> {
    story::run(story_file, context)
}

fn inspect_settings(show_all: bool, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let effective = settings::gather_settings(project.root(), &SettingSources::from_environment())?;
    let survey = settings::survey_settings(project.root(), &effective);
    let project_root = project.root().display().to_string();
    if context.wants_json {
        // Programs get every setting; `--all` is for the terminal only, where unused ones are noise.
        json_documents::print_document(&settings::SettingsDocument::from_project(&effective, &survey, project_root))?;
    } else {
        write!(stdout(), "{}", settings::draw_settings(&effective, &project_root, show_all, &context.answer_screen))?;
        write!(stdout(), "{}", settings::draw_survey(&survey, &project_root, &context.answer_screen))?;
    }
    Ok(if survey.problems.is_empty() { 0 } else { EXIT_NEGATIVE })
}

/// Inspects one file alone, as strictly as at its usual place: BMAD's own keys are no mistakes in BMAD's file.
fn inspect_settings_file(file: &Path, context: &CommandContext) -> Result<u8, UserError> {
    let settings_text = read_input(file, context)?;
    // Only the path tells the two kinds of files apart, since their contents may overlap.
    let (manner, layer) = match file.ends_with(CONFIG_PATH) {
        true => (ReadMode::Lenient, SettingLayer::Bmad),
        false => (ReadMode::Strict, SettingLayer::Project),
    };
    let file_name = file.display().to_string();
    let parsed_file = settings::read_settings(&file_name, &settings_text, manner);
    if context.wants_json {
        json_documents::print_document(&settings::SettingsDocument::from_file(&parsed_file, file_name, layer))?;
    } else {
        write!(stdout(), "{}", settings::draw_settings_file(&parsed_file, &file_name, &context.answer_screen))?;
    }
    Ok(if parsed_file.problems.is_empty() { 0 } else { EXIT_NEGATIVE })
}

fn read_input(input_file: &Path, context: &CommandContext) -> Result<String, UserError> {
    if input_file.as_os_str() == "-" {
        let mut input_bytes = Vec::new();
        stdin().read_to_end(&mut input_bytes)?;
        // An agent's output need not be valid UTF-8; the parser has to cope with it as it does in a run.
        Ok(String::from_utf8_lossy(&input_bytes).into_owned())
    } else {
        let input_path = context.resolve_path(input_file);
        let input_bytes = fs::read(&input_path).map_err(|cause| {
            UserError::usage(format!("{} cannot be read: {cause}", input_file.display())).with_step("check the path")
        })?;
        Ok(String::from_utf8_lossy(&input_bytes).into_owned())
    }
}

fn inspect_answer(answer_file: &Path, expected_content: AnswerKind, context: &CommandContext) -> Result<u8, UserError> {
    let answer_text = read_input(answer_file, context)?;
    let parsed = parse_answer(&answer_text, expected_content);
    // No findings at all is a readable answer; only what the parser could not understand is negative.
    let is_readable = !matches!(parsed.content, AnswerContent::Unreadable { .. });
    if context.wants_json {
        let schema = "tribunal.inspect/1";
        let ParsedAnswer { content, minutes, remarks } = parsed;
        // Only parties have minutes, so an empty record is left out.
        let minutes = (!minutes.is_empty()).then_some(minutes);
        json_documents::print_document(&InspectionDocument { schema, content, minutes, remarks })?;
    } else {
        let ParsedAnswer { content, minutes, remarks } = &parsed;
        print_answer(&mut wrapped_stdout(), &InspectedAnswer { content, minutes, remarks })?;
    }
    Ok(if is_readable { 0 } else { EXIT_NEGATIVE })
}

/// An agent's answer after parsing.
struct InspectedAnswer<'a> {
    content: &'a AnswerContent,
    minutes: &'a PartyMinutes,
    remarks: &'a [String],
}

fn print_answer(output: &mut impl Write, parsed_answer: &InspectedAnswer<'_>) -> Result<(), UserError> {
    let InspectedAnswer { content, minutes, remarks } = parsed_answer;
    match content {
        AnswerContent::Findings { raised: raised_findings } => {
            writeln!(output, "{}", format_count(raised_findings.len(), "finding"))?;
            for raised_finding in raised_findings {
                let evidence = match &raised_finding.evidence {
                    Evidence::Quote { text } => format!("quote “{text}”"),
                    Evidence::Absence { heading, terms } => {
                        format!("absent under “{heading}”: {}", terms.join(", "))
                    }
                    Evidence::Check { command, .. } => format!("check {command}"),
                };
                writeln!(
                    output,
                    "  {:<9} {}",
                    raised_finding.severity.as_str(),
                    escape_line(&raised_finding.description)
                )?;
                writeln!(output, "            {}", escape_line(&evidence))?;
            }
        }
        AnswerContent::Status(report) => {
            let said = if report.is_done() { "done" } else { "not done" };
            let status = report.status.map_or("no status", WorkStatus::as_str);
            writeln!(output, "status block: {status}, {said}")?;
            if !report.recommendation.is_empty() {
                writeln!(output, "  {}", escape_line(&report.recommendation))?;
            }
        }
        AnswerContent::Question(question) => {
            let AgentQuestion { question, options, .. } = question.as_ref();
            writeln!(output, "question: {}", clean_block(question))?;
            for option in options {
                writeln!(output, "  {:<4} {}", escape_line(&option.key), escape_line(&option.label))?;
            }
        }
        AnswerContent::Text { text } => writeln!(output, "text:\n{}", clean_block(text))?,
        AnswerContent::Turn(report) => writeln!(output, "text:\n{}", clean_block(&report.text))?,
        AnswerContent::Unreadable { message } => writeln!(output, "unreadable: {}", clean_block(message))?,
        AnswerContent::Rulings { rulings, .. } => {
            writeln!(output, "{}", format_count(rulings.len(), "verdict"))?;
            for ruling in rulings {
                let ruling_line =
                    format!("  {:<4} {:<10} {}", ruling.id.to_string(), ruling.holds.as_str(), ruling.note);
                writeln!(output, "{}", escape_line(ruling_line.trim_end()))?;
                // A challenger's counter-quote is what a dismissal rests on, so it is shown below the verdict.
                if !ruling.counter.is_empty() {
                    writeln!(output, "                  counter-quote “{}”", escape_line(&ruling.counter))?;
                }
            }
        }
        AnswerContent::Fixes { claims, .. } => {
            writeln!(output, "{}", format_count(claims.len(), "claim"))?;
            for claim in claims {
                let memory_note = if claim.memory_saved { " (lesson saved to memory)" } else { "" };
                let claim_line = format!(
                    "  {:<4} {:<9} {}{memory_note}",
                    claim.id.to_string(),
                    claim.said.as_str(),
                    escape_line(&claim.note)
                );
                writeln!(output, "{}", claim_line.trim_end())?;
            }
        }
    }
    print_minutes(output, minutes)?;
    for remark in *remarks {
        writeln!(output, "warning: {}", escape_line(remark))?;
    }
    Ok(())
}

/// Prints what a party reported beside its findings.
fn print_minutes(output: &mut impl Write, minutes: &PartyMinutes) -> Result<(), UserError> {
    if !minutes.personas.is_empty() {
        writeln!(output, "personas: {}", escape_line(&minutes.personas.join(", ")))?;
    }
    for ballot in &minutes.ballots {
        let votes = ballot.votes.iter().map(|vote| format!("{} {}", vote.persona, vote.severity));
        let votes_text = votes.collect::<Vec<_>>().join(", ");
        let dissent = if ballot.dissent.is_empty() { "" } else { "; dissent: " };
        // Ballots refer to findings by position from 0; users count from 1.
        let ballot_line = format!("votes on finding {}: {votes_text}{dissent}{}", ballot.finding + 1, ballot.dissent);
        writeln!(output, "{}", escape_line(&ballot_line))?;
    }
    for (label, statement) in [("consensus", &minutes.consensus), ("dissent", &minutes.dissent)] {
        if !statement.is_empty() {
            writeln!(output, "{label}: {}", escape_line(statement))?;
        }
    }
    Ok(())
}

fn format_count(item_count: usize, noun: &str) -> String {
    if item_count == 1 { format!("1 {noun}") } else { format!("{item_count} {noun}s") }
}
