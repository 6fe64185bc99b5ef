//! `tribunal inspect response --agent A FILE`: shows what a driver reads from an agent's raw output, and what the
//! text says about the work.

use std::{
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_agents::{
    analysis::{AnalysisContext, OutputShape, ResponseAnalysis, analyse_response},
    answer::{AnswerKind, ParsedAnswer, parse_answer},
    clients::{self, AGENT_CLIENT_IDS, AgentClient},
    driver::{DecodedOutput, DrivenAgent, FinishedProcess, LocalClock, SessionMode},
};
use tribunal_engine::{
    fault::{Fault, FaultPolicy},
    limits::AgentUsage,
};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;
use tribunal_workflows::{
    runs::settings::{AgentSpec, DriverSpec},
    tasks::{brief::AnswerContent, client::ClientSpec, party_minutes::PartyMinutes},
};

use crate::{
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    settings::{self, SettingSources, nearest_name},
    terminal::wrapped_output::wrapped_stdout,
};

/// What a driver read from an agent's raw output.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ResponseReport {
    schema: &'static str,
    agent: String,
    driver: String,
    /// Whether the final message was there.
    finished: bool,
    /// Whether the agent had begun to work.
    active: bool,
    session: Option<String>,
    usage: AgentUsage,
    fault: Option<Fault>,
    /// What follows from the fault: retry, retry_then_fall_back, wait, fall_back or stop.
    rule: Option<&'static str>,
    /// What the output says beside the answer, such as denied tools or servers that did not start.
    remarks: Vec<String>,
    answer: ResponseAnswer,
    /// What the text says about the work; see `tribunal_agents::analysis`.
    #[schemars(with = "serde_json::Value")]
    analysis: ResponseAnalysis,
}

/// The final text after parsing.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ResponseAnswer {
    #[serde(flatten)]
    content: AnswerContent,
    #[serde(skip_serializing_if = "Option::is_none")]
    minutes: Option<PartyMinutes>,
    remarks: Vec<String>,
}

pub(super) fn run(
    agent_name: &str,
    raw_output: &str,
    expected_content: AnswerKind,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let agent = find_agent(agent_name, context)?;
    let agent = DrivenAgent::new(agent).map_err(|unknown_client| UserError::usage(unknown_client.to_string()))?;
    // Limits may be given as a local time of day, so the decoder needs clock and time zone.
    let clock = LocalClock { now_ms: now_ms(), time_zone: jiff::tz::TimeZone::system() };
    // A file has no exit code; a successful one makes the decoder judge by the output alone.
    let finished = FinishedProcess {
        exit_code: Some(0),
        stdout: raw_output,
        stderr: "",
        clock: &clock,
        session_mode: SessionMode::New,
    };
    let DecodedOutput {
        answer_text: last_text,
        usage,
        session,
        fault,
        is_finished: finished,
        did_work: active,
        remarks,
        // Denials are among the remarks as well.
        denied: _,
    } = agent.decode_output(&finished);
    let parsed = parse_answer(&last_text, expected_content);
    let output_shape = agent.client().and_then(|client| OutputShape::for_client(client.id));
    // The analysis sees the raw output: it looks for signs of work that are not part of the answer.
    let analysis = analyse_response(raw_output, output_shape, &AnalysisContext::default());
    let is_usable = fault.is_none() && !matches!(parsed.content, AnswerContent::Unreadable { .. });
    // The driver and the parser both have remarks, which are kept apart.
    let ParsedAnswer { content, minutes, remarks: parser_remarks } = parsed;
    let response_report = ResponseReport {
        schema: "tribunal.response/1",
        agent: agent_name.to_string(),
        driver: agent.agent_spec.driver.driver_name().to_string(),
        finished,
        active,
        session: session.map(|session| session.id),
        usage,
        rule: fault.as_ref().map(|fault| rule_name(fault.policy())),
        fault,
        remarks,
        answer: ResponseAnswer {
            content,
            minutes: Some(minutes).filter(|minutes| !minutes.is_empty()),
            remarks: parser_remarks,
        },
        analysis,
    };
    if context.wants_json {
        json_documents::print_document(&response_report)?;
    } else {
        print_response(&mut wrapped_stdout(), &response_report)?;
    }
    Ok(if is_usable { 0 } else { EXIT_NEGATIVE })
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Finds an agent of the settings, else a driver of that name. Unreadable settings do not prevent the inspection.
fn find_agent(agent_name: &str, context: &CommandContext) -> Result<AgentSpec, UserError> {
    // An agent's name in the settings takes precedence over a driver of the same name.
    if let Ok(effective) =
        settings::gather_settings(context.current_project().root(), &SettingSources::from_environment())
        && let Some(driver) = settings::find_driver(agent_name, &effective)
    {
        return driver.map(|driver| AgentSpec::new(agent_name, driver));
    }
    let driver = match agent_name {
        // Neither needs its real arguments here: only their way of decoding is used.
        "command" => DriverSpec::Command { argv: Vec::new() },
        "replay" => DriverSpec::Replay { script: String::new(), paced: false },
        _ => match AgentClient::find(clients::canonical_id(agent_name)) {
            Ok(client) => DriverSpec::Client(ClientSpec::new(client.id)),
            Err(_) => {
                let user_error = UserError::usage(format!("unknown agent or driver `{agent_name}`"));
                let driver_names = [&AGENT_CLIENT_IDS[..], &["command", "replay"]].concat();
                let suggestion = nearest_name(agent_name, &driver_names).map_or_else(
                    || format!("use an agent from the settings, or one of: {}", driver_names.join(", ")),
                    |nearest_driver| format!("did you mean `{nearest_driver}`?"),
                );
                return Err(user_error.with_step(suggestion));
            }
        },
    };
    Ok(AgentSpec::new(agent_name, driver))
}

fn rule_name(rule: FaultPolicy) -> &'static str {
    match rule {
        FaultPolicy::Retry => "retry",
        FaultPolicy::RetryThenFallBack => "retry_then_fall_back",
        FaultPolicy::Wait => "wait",
        FaultPolicy::FallBack => "fall_back",
        FaultPolicy::Stop => "stop",
    }
}

/// Describes for the user what follows from a fault.
fn describe_rule(rule: FaultPolicy) -> &'static str {
    match rule {
        FaultPolicy::Retry => "the task is retried once",
        FaultPolicy::RetryThenFallBack => "the task is retried once, then given to another agent",
        FaultPolicy::Wait => "the task is given to another agent, or waits",
        FaultPolicy::FallBack => "the task is given to another agent",
        FaultPolicy::Stop => "needs your attention",
    }
}

// The labels have a fixed width, so that the values line up.
fn print_response(output: &mut impl Write, response_report: &ResponseReport) -> Result<(), UserError> {
    let yes_or_no = |flag: bool| if flag { "yes" } else { "no" };
    writeln!(output, "driver     {}", escape_line(&response_report.driver))?;
    writeln!(output, "finished   {}", yes_or_no(response_report.finished))?;
    writeln!(output, "active     {}", yes_or_no(response_report.active))?;
    writeln!(output, "session    {}", response_report.session.as_deref().map_or("-".into(), escape_line))?;
    writeln!(output, "usage      {}", format_usage(&response_report.usage))?;
    match &response_report.fault {
        Some(fault) => {
            writeln!(output, "fault      {}: {}", fault.kind.table_row().code, escape_line(&fault.detail))?;
            writeln!(output, "           {}", describe_rule(fault.policy()))?;
        }
        None => writeln!(output, "fault      none")?,
    }
    for remark in &response_report.remarks {
        writeln!(output, "warning: {}", escape_line(remark))?;
    }
    let answer = &response_report.answer;
    writeln!(output, "\nanswer")?;
    let minutes = answer.minutes.clone().unwrap_or_default();
    let parsed_answer =
        super::InspectedAnswer { content: &answer.content, minutes: &minutes, remarks: &answer.remarks };
    super::print_answer(output, &parsed_answer)?;
    let analysis = &response_report.analysis;
    let verdict = if analysis.done { "done" } else { "not done" };
    writeln!(output, "\nanalysis: {verdict}, score {}", analysis.score)?;
    // Flags that are not set are left out.
    for (flag, label) in [(analysis.test_only, "tests only"), (analysis.stuck, "stuck")] {
        if flag {
            writeln!(output, "  {label}")?;
        }
    }
    for reason in &analysis.reasons {
        writeln!(output, "  {}", escape_line(reason))?;
    }
    Ok(())
}

/// Formats usage: `21000 tokens in, 300 out, 0 cached; $0.16`.
fn format_usage(usage: &AgentUsage) -> String {
    let AgentUsage { input_tokens, output_tokens, cached_tokens, cost, notional, .. } = usage;
    let tokens = format!("{input_tokens} tokens in, {output_tokens} out, {cached_tokens} cached");
    match cost {
        None => tokens,
        // With a subscription the price is only a comparison, and must not be taken for a bill.
        Some(cost) if *notional => format!("{tokens}; ${cost} at list price, covered by the subscription"),
        Some(cost) => format!("{tokens}; ${cost}"),
    }
}
