//! `tribunal inspect …`: shows what Tribunal reads from a file or from an agent's output, and why.

mod menu;
mod project;
mod response;
mod sprint;
mod story;
mod transcript;

pub(super) use menu::Menus;
pub(super) use project::ProjectReport;
pub(super) use response::Response;
pub(super) use sprint::SprintFile;
pub(super) use story::StoryFile;

use std::{
    fs,
    io::{Read, Write, stdin, stdout},
    path::{Path, PathBuf},
};

use tribunal_agents::answer::{Parsed, Wanted, parse};
use tribunal_bmad::CONFIG_PATH;
use tribunal_core::{
    brief::{Content, Minutes, Said},
    finding::Evidence,
};
use tribunal_report::{clean_block, escaped};

use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents::{self, Inspection},
    settings::{self, Given, Layer, Manner},
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum What {
    /// The findings in an agent's answer
    Findings {
        /// The answer; `-` for standard input
        file: PathBuf,
    },
    /// The settings in force here, with where each comes from; or what one file sets
    Settings {
        /// A settings file, looked at alone
        file: Option<PathBuf>,
        /// Also those that are accepted and not used by this version
        #[arg(long)]
        all: bool,
    },
    /// An agent's answer, as its parser sees it
    Response {
        /// The answer; `-` for standard input
        file: PathBuf,
        /// Read it as the raw output of this agent, or of this driver: its last word, session, usage, faults
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Read it as a fixer's answer: claims about findings
        #[arg(long)]
        fixes: bool,
        /// Read it as a challenger's answer: a verdict on each finding
        #[arg(long, conflicts_with = "fixes")]
        verdicts: bool,
    },
    /// The menus and questions in what an agent said, and what only looks like one; exit 3: there is no menu
    Menu {
        /// The text; `-` for standard input
        file: PathBuf,
    },
    /// The board: what every line of it is taken for
    Sprint(sprint::Arguments),
    /// A story's file: status, tasks, criteria, files, what a review left; exit 3: it cannot be used as it is
    Story {
        /// The story; `-` for standard input
        file: PathBuf,
    },
    /// Which BMAD is installed here, how its steps are run, how far the project has come; exit 3: a file is broken
    Project(project::Arguments),
    /// What an agent printed in a run, and what was read from it
    Transcript(transcript::Arguments),
}

pub(crate) fn run(what: What, context: &Context) -> Result<u8, Complaint> {
    match what {
        What::Findings { file } => answer(&file, Wanted::Findings, context),
        What::Response { file, agent, fixes, verdicts } => {
            let wanted = match (fixes, verdicts) {
                (true, _) => Wanted::Fixes,
                (_, true) => Wanted::Verdicts,
                (false, false) => Wanted::Findings,
            };
            // With an agent, the file is its raw output, from which the answer has to be extracted first.
            match agent {
                Some(agent) => response::run(&agent, &text_of(&file, context)?, wanted, context),
                None => answer(&file, wanted, context),
            }
        }
        What::Menu { file } => menu::run(&file, context),
        What::Sprint(arguments) => sprint::run(&arguments, context),
        What::Story { file } => story::run(&file, context),
        What::Project(arguments) => project::run(&arguments, context),
        What::Transcript(arguments) => transcript::run(&arguments, context),
        What::Settings { file: Some(file), .. } => settings_file(&file, context),
        What::Settings { file: None, all } => settings(all, context),
    }
}

/// Inspects a story for `tribunal story KEY`, too.
pub(super) fn story(file: &Path, context: &Context) -> Result<u8, Complaint> {
    story::run(file, context)
}

fn settings(all: bool, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let effective = settings::gather(project.root(), &Given::from_environment())?;
    let survey = settings::survey(project.root(), &effective);
    let root = project.root().display().to_string();
    if context.json {
        // Programs get every setting; `--all` is for the terminal only, where unused ones are noise.
        documents::print(&settings::Document::of_project(&effective, &survey, root))?;
    } else {
        write!(stdout(), "{}", settings::draw(&effective, &root, all, &context.answers))?;
        write!(stdout(), "{}", settings::draw_survey(&survey, &root, &context.answers))?;
    }
    Ok(if survey.problems.is_empty() { 0 } else { NEGATIVE })
}

/// Inspects one file alone, as strictly as at its usual place: BMAD's own keys are no mistakes in BMAD's file.
fn settings_file(file: &Path, context: &Context) -> Result<u8, Complaint> {
    let text = text_of(file, context)?;
    // Only the path tells the two kinds of files apart, since their contents may overlap.
    let (manner, layer) = match file.ends_with(CONFIG_PATH) {
        true => (Manner::Lenient, Layer::Bmad),
        false => (Manner::Strict, Layer::Project),
    };
    let name = file.display().to_string();
    let reading = settings::read(&name, &text, manner);
    if context.json {
        documents::print(&settings::Document::of_file(&reading, name, layer))?;
    } else {
        write!(stdout(), "{}", settings::draw_file(&reading, &name, &context.answers))?;
    }
    Ok(if reading.problems.is_empty() { 0 } else { NEGATIVE })
}

fn text_of(file: &Path, context: &Context) -> Result<String, Complaint> {
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        stdin().read_to_end(&mut bytes)?;
        // Agents print broken UTF-8 now and then; the parser has to cope with it as it does in a run.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    } else {
        let path = context.path(file);
        let bytes = fs::read(&path).map_err(|cause| {
            Complaint::usage(format!("{} cannot be read: {cause}", file.display())).todo("check the path")
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn answer(file: &Path, wanted: Wanted, context: &Context) -> Result<u8, Complaint> {
    let text = text_of(file, context)?;
    let parsed = parse(&text, wanted);
    // No findings at all is a readable answer; only what the parser could not understand is negative.
    let readable = !matches!(parsed.content, Content::Unreadable { .. });
    if context.json {
        let schema = "tribunal.inspect/1";
        let Parsed { content, minutes, remarks } = parsed;
        // Only parties have minutes, so an empty record is left out.
        let minutes = (!minutes.is_empty()).then_some(minutes);
        documents::print(&Inspection { schema, content, minutes, remarks })?;
    } else {
        let Parsed { content, minutes, remarks } = &parsed;
        show(&mut stdout().lock(), &AnswerRead { content, minutes, remarks })?;
    }
    Ok(if readable { 0 } else { NEGATIVE })
}

/// An agent's answer after parsing.
struct AnswerRead<'a> {
    content: &'a Content,
    minutes: &'a Minutes,
    remarks: &'a [String],
}

fn show(out: &mut impl Write, answer: &AnswerRead<'_>) -> Result<(), Complaint> {
    let AnswerRead { content, minutes, remarks } = answer;
    match content {
        Content::Findings { raised } => {
            writeln!(out, "{}", count(raised.len(), "finding"))?;
            for raised in raised {
                let evidence = match &raised.evidence {
                    Evidence::Quote { text } => format!("quote “{text}”"),
                    Evidence::Absence { heading, terms } => {
                        format!("absent under “{heading}”: {}", terms.join(", "))
                    }
                };
                writeln!(out, "  {:<9} {}", raised.severity.as_str(), escaped(&raised.description))?;
                writeln!(out, "            {}", escaped(&evidence))?;
            }
        }
        Content::Unreadable { message } => writeln!(out, "unreadable: {}", clean_block(message))?,
        Content::Rulings { rulings } => {
            writeln!(out, "{}", count(rulings.len(), "verdict"))?;
            for ruling in rulings {
                let line =
                    format!("  {:<4} {:<10} {}", ruling.id.to_string(), ruling.holds.as_str(), ruling.note);
                writeln!(out, "{}", escaped(line.trim_end()))?;
                // A challenger's counter-quote is what a dismissal rests on, so it is shown below the verdict.
                if !ruling.counter.is_empty() {
                    writeln!(out, "                  against it “{}”", escaped(&ruling.counter))?;
                }
            }
        }
        Content::Fixes { claims } => {
            writeln!(out, "{}", count(claims.len(), "claim"))?;
            for claim in claims {
                let said = if claim.said == Said::Fixed { "fixed" } else { "blocked" };
                writeln!(out, "  {:<4} {said:<8} {}", claim.id.to_string(), escaped(&claim.note))?;
            }
        }
    }
    show_minutes(out, minutes)?;
    for remark in *remarks {
        writeln!(out, "[W] {}", escaped(remark))?;
    }
    Ok(())
}

/// Prints what a party reported beside its findings.
fn show_minutes(out: &mut impl Write, minutes: &Minutes) -> Result<(), Complaint> {
    if !minutes.personas.is_empty() {
        writeln!(out, "personas: {}", escaped(&minutes.personas.join(", ")))?;
    }
    for ballot in &minutes.ballots {
        let votes = ballot.votes.iter().map(|vote| format!("{} {}", vote.persona, vote.severity));
        let votes = votes.collect::<Vec<_>>().join(", ");
        let dissent = if ballot.dissent.is_empty() { "" } else { "; dissent: " };
        // Ballots refer to findings by position from 0; users count from 1.
        let line = format!("votes on finding {}: {votes}{dissent}{}", ballot.finding + 1, ballot.dissent);
        writeln!(out, "{}", escaped(&line))?;
    }
    for (what, text) in [("consensus", &minutes.consensus), ("dissent", &minutes.dissent)] {
        if !text.is_empty() {
            writeln!(out, "{what}: {}", escaped(text))?;
        }
    }
    Ok(())
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
