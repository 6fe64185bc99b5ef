//! A program that is nothing but a keeper: tests and benchmarks of this crate put it between themselves and a process. Started
//! by its own name, it prints the agent that it finds around itself.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use tribunal_supervise::{EnclosingAgent, MARK_VARIABLE, enter_keeper, find_enclosing_agent};

fn main() -> ExitCode {
    if let Some(keeper_exit) = enter_keeper() {
        return keeper_exit;
    }
    let answer = match find_enclosing_agent(std::env::var(MARK_VARIABLE).ok()) {
        None => "outside".to_string(),
        Some(EnclosingAgent { process_mark: None }) => "inside".to_string(),
        Some(EnclosingAgent { process_mark: Some(process_mark) }) => format!("inside {process_mark}"),
    };
    match writeln!(stdout(), "{answer}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
