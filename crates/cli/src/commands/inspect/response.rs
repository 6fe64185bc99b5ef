//! `tribunal inspect response --agent A FILE`: shows what a driver reads from an agent's raw output, and what the
//! text says about the work.

use std::{
    io::{Write, stdout},
    time::{SystemTime, UNIX_EPOCH},
};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_agents::{
    analysis::{Analysis, Before, Shape, analyse},
    answer::{Parsed, Wanted, parse},
    clients::{self, AGENT_CLIENT_IDS, AgentClient},
    driver::{Clock, Decoded, DrivenAgent, Finished, Talk},
};
use tribunal_core::{
    brief::{Content, Minutes},
    client::ClientSpec,
    fault::{Fault, Rule},
    limits::Usage,
    settings::{AgentSpec, DriverSpec},
};
use tribunal_report::escaped;

use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents,
    settings::{self, Given, nearest},
};

/// What a driver read from an agent's raw output.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Response {
    schema: &'static str,
    agent: String,
    driver: String,
    /// Whether the final message was there.
    finished: bool,
    /// Whether the agent had begun to work.
    active: bool,
    session: Option<String>,
    usage: Usage,
    fault: Option<Fault>,
    /// What follows from the fault: retry, retry_then_fall_back, wait, fall_back or stop.
    rule: Option<&'static str>,
    /// What the output says beside the answer, such as denied tools or servers that did not start.
    remarks: Vec<String>,
    answer: Answer,
    /// What the text says about the work; see `tribunal_agents::analysis`.
    #[schemars(with = "serde_json::Value")]
    analysis: Analysis,
}

/// The final text after parsing.
#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    #[serde(flatten)]
    content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    minutes: Option<Minutes>,
    remarks: Vec<String>,
}

pub(super) fn run(name: &str, text: &str, wanted: Wanted, context: &Context) -> Result<u8, Complaint> {
    let agent = agent(name, context)?;
    let agent = DrivenAgent::new(agent).map_err(|unknown| Complaint::usage(unknown.to_string()))?;
    // Limits are often given as a local time of day, so the decoder needs clock and time zone.
    let clock = Clock { now_ms: now_ms(), zone: jiff::tz::TimeZone::system() };
    // A file has no exit code; a successful one makes the decoder judge by the output alone.
    let finished = Finished { code: Some(0), stdout: text, stderr: "", clock: &clock, talk: Talk::New };
    let Decoded { text: last, usage, session, fault, finished, active, remarks } = agent.decode(&finished);
    let parsed = parse(&last, wanted);
    let shape = agent.client().and_then(|client| Shape::named(client.id));
    // The analysis sees the raw output: it looks for signs of work that are not part of the answer.
    let analysis = analyse(text, shape, &Before::default());
    let usable = fault.is_none() && !matches!(parsed.content, Content::Unreadable { .. });
    // The driver and the parser both have remarks, which are kept apart.
    let Parsed { content, minutes, remarks: overlooked } = parsed;
    let response = Response {
        schema: "tribunal.response/1",
        agent: name.to_string(),
        driver: agent.spec.driver.name().to_string(),
        finished,
        active,
        session: session.map(|session| session.id),
        usage,
        rule: fault.as_ref().map(|fault| rule_word(fault.rule())),
        fault,
        remarks,
        answer: Answer {
            content,
            minutes: Some(minutes).filter(|minutes| !minutes.is_empty()),
            remarks: overlooked,
        },
        analysis,
    };
    if context.json {
        documents::print(&response)?;
    } else {
        show(&mut stdout().lock(), &response)?;
    }
    Ok(if usable { 0 } else { NEGATIVE })
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Finds an agent of the settings, else a driver of that name. Unreadable settings do not prevent the inspection.
fn agent(name: &str, context: &Context) -> Result<AgentSpec, Complaint> {
    // An agent's name in the settings takes precedence over a driver of the same name.
    if let Ok(effective) = settings::gather(context.project().root(), &Given::from_environment())
        && let Some(driver) = settings::driver_of(name, &effective)
    {
        return driver.map(|driver| AgentSpec::new(name, driver));
    }
    let driver = match name {
        // Neither needs its real arguments here: only their way of decoding is used.
        "command" => DriverSpec::Command { argv: Vec::new() },
        "replay" => DriverSpec::Replay { script: String::new(), paced: false },
        _ => match AgentClient::find(clients::canonical(name)) {
            Ok(client) => DriverSpec::Client(ClientSpec::new(client.id)),
            Err(_) => {
                let complaint = Complaint::usage(format!("there is no agent and no driver `{name}`"));
                let drivers = [&AGENT_CLIENT_IDS[..], &["command", "replay"]].concat();
                let near = nearest(name, &drivers).map_or_else(
                    || format!("name an agent of the settings, or one of: {}", drivers.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(complaint.todo(near));
            }
        },
    };
    Ok(AgentSpec::new(name, driver))
}

fn rule_word(rule: Rule) -> &'static str {
    match rule {
        Rule::Retry => "retry",
        Rule::RetryThenFallBack => "retry_then_fall_back",
        Rule::Wait => "wait",
        Rule::FallBack => "fall_back",
        Rule::Stop => "stop",
    }
}

/// Describes for the user what follows from a fault.
fn rule_says(rule: Rule) -> &'static str {
    match rule {
        Rule::Retry => "the same is tried once more",
        Rule::RetryThenFallBack => "the same is tried once more, then another agent is asked",
        Rule::Wait => "another agent is asked, or it is waited for",
        Rule::FallBack => "another agent is asked",
        Rule::Stop => "a person is needed",
    }
}

// The labels have a fixed width, so that the values line up.
fn show(out: &mut impl Write, response: &Response) -> Result<(), Complaint> {
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    writeln!(out, "read as    {}", escaped(&response.driver))?;
    writeln!(out, "last word  {}", yes(response.finished))?;
    writeln!(out, "at work    {}", yes(response.active))?;
    writeln!(out, "session    {}", response.session.as_deref().map_or("-".into(), escaped))?;
    writeln!(out, "used       {}", used(&response.usage))?;
    match &response.fault {
        Some(fault) => {
            writeln!(out, "fault      {}: {}", fault.kind.row().code, escaped(&fault.detail))?;
            writeln!(out, "           {}", rule_says(fault.rule()))?;
        }
        None => writeln!(out, "fault      none")?,
    }
    for remark in &response.remarks {
        writeln!(out, "[W] {}", escaped(remark))?;
    }
    let answer = &response.answer;
    writeln!(out, "\nanswer")?;
    let minutes = answer.minutes.clone().unwrap_or_default();
    let read = super::AnswerRead { content: &answer.content, minutes: &minutes, remarks: &answer.remarks };
    super::show(out, &read)?;
    let analysis = &response.analysis;
    let verdict = if analysis.done { "done" } else { "goes on" };
    writeln!(out, "\nits words: {verdict}, score {}", analysis.score)?;
    // Flags that are not set are left out.
    for (flag, says) in [(analysis.test_only, "tests only"), (analysis.stuck, "stuck")] {
        if flag {
            writeln!(out, "  {says}")?;
        }
    }
    for reason in &analysis.reasons {
        writeln!(out, "  {}", escaped(reason))?;
    }
    Ok(())
}

/// Formats usage: `21000 tokens in, 300 out, 0 from the cache; cost 0.16`.
fn used(usage: &Usage) -> String {
    let Usage { input_tokens, output_tokens, cached_tokens, cost, notional, .. } = usage;
    let tokens = format!("{input_tokens} tokens in, {output_tokens} out, {cached_tokens} from the cache");
    match cost {
        None => tokens,
        // With a subscription the price is only a comparison, and must not be taken for a bill.
        Some(cost) if *notional => format!("{tokens}; {cost} at list price, paid by the subscription"),
        Some(cost) => format!("{tokens}; cost {cost}"),
    }
}
