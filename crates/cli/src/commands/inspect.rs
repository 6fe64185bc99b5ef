//! `tribunal inspect …`: what Tribunal sees in a file or in what an agent printed, and why.

mod transcript;

use std::{
    fs,
    io::{Read, Write, stdin, stdout},
    path::{Path, PathBuf},
};

use tribunal_agents::answer::{Wanted, parse};
use tribunal_core::{
    brief::{Content, Said},
    finding::Evidence,
};

use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents::{self, Inspection},
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum What {
    /// The findings in an agent's answer
    Findings {
        /// The answer; `-` for standard input
        file: PathBuf,
    },
    /// An agent's answer, as its parser sees it
    Response {
        /// The answer; `-` for standard input
        file: PathBuf,
        /// Read it as a fixer's answer: claims about findings
        #[arg(long)]
        fixes: bool,
    },
    /// What an agent printed in a run, and what was read from it
    Transcript(transcript::Arguments),
}

pub(crate) fn run(what: What, context: &Context) -> Result<u8, Complaint> {
    match what {
        What::Findings { file } => response(&file, Wanted::Findings, context),
        What::Response { file, fixes } => {
            response(&file, if fixes { Wanted::Fixes } else { Wanted::Findings }, context)
        }
        What::Transcript(arguments) => transcript::run(&arguments, context),
    }
}

fn response(file: &Path, wanted: Wanted, context: &Context) -> Result<u8, Complaint> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        stdin().read_to_string(&mut text)?;
        text
    } else {
        let path = context.path(file);
        let bytes = fs::read(&path).map_err(|cause| {
            Complaint::usage(format!("{} cannot be read: {cause}", file.display())).todo("check the path")
        })?;
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let parsed = parse(&text, wanted);
    let readable = !matches!(parsed.content, Content::Unreadable { .. });
    if context.json {
        let schema = "tribunal.inspect/1";
        documents::print(&Inspection { schema, content: parsed.content, remarks: parsed.remarks })?;
    } else {
        show(&mut stdout().lock(), &parsed.content, &parsed.remarks)?;
    }
    Ok(if readable { 0 } else { NEGATIVE })
}

fn show(out: &mut impl Write, content: &Content, remarks: &[String]) -> Result<(), Complaint> {
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
                writeln!(out, "  {:<9} {}", raised.severity.as_str(), raised.description)?;
                writeln!(out, "            {evidence}")?;
            }
        }
        Content::Unreadable { message } => writeln!(out, "unreadable: {message}")?,
        Content::Fixes { claims } => {
            writeln!(out, "{}", count(claims.len(), "claim"))?;
            for claim in claims {
                let said = if claim.said == Said::Fixed { "fixed" } else { "blocked" };
                writeln!(out, "  {:<4} {said:<8} {}", claim.id.to_string(), claim.note)?;
            }
        }
    }
    for remark in remarks {
        writeln!(out, "[W] {remark}")?;
    }
    Ok(())
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
