//! `tribunal inspect …`: what Tribunal sees in a file, and why.

use std::{
    fs,
    io::{Read, Write, stdin, stdout},
    path::PathBuf,
};

use tribunal_agents::answer::{Wanted, parse};
use tribunal_core::{brief::Content, finding::Evidence};

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
}

pub(crate) fn run(what: What, context: &Context) -> Result<u8, Complaint> {
    let What::Findings { file } = what;
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        stdin().read_to_string(&mut text)?;
        text
    } else {
        let path = context.path(&file);
        let bytes = fs::read(&path).map_err(|cause| {
            Complaint::usage(format!("{} cannot be read: {cause}", file.display())).todo("check the path")
        })?;
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let parsed = parse(&text, Wanted::Findings);
    let readable = !matches!(parsed.content, Content::Unreadable { .. });
    if context.json {
        let schema = "tribunal.inspect/1";
        documents::print(&Inspection { schema, content: parsed.content, remarks: parsed.remarks })?;
    } else {
        show(&parsed.content, &parsed.remarks)?;
    }
    Ok(if readable { 0 } else { NEGATIVE })
}

fn show(content: &Content, remarks: &[String]) -> Result<(), Complaint> {
    let mut out = stdout().lock();
    match content {
        Content::Findings { raised } => {
            writeln!(out, "{} findings", raised.len())?;
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
        Content::Fixes { .. } => {}
    }
    for remark in remarks {
        writeln!(out, "[W] {remark}")?;
    }
    Ok(())
}
