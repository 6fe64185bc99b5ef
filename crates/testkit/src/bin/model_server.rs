//! `model-server --scenario FILE [--port N]`: the scripted model server for trying a client by hand. It prints its address and
//! then a line for each request, until it is ended. Exit code 2 means that the arguments are not understood.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line")]

use std::{convert::Infallible, error::Error, fs, process::ExitCode};

use tribunal_testkit::model::{Request, Scenario, Server};

const USAGE: &str = "usage: model-server --scenario FILE [--port N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((scenario, port)) = read(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Err(problem) = run(&scenario, port);
    eprintln!("model-server: {scenario}: {problem}");
    ExitCode::FAILURE
}

fn read(arguments: &[String]) -> Option<(String, u16)> {
    let (mut scenario, mut port) = (None, 0);
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--scenario" => scenario = Some(value.clone()),
            "--port" => port = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((scenario?, port))
}

fn run(scenario: &str, port: u16) -> Result<Infallible, Box<dyn Error>> {
    let server = Server::start_on(Scenario::parse(&fs::read_to_string(scenario)?)?, port)?;
    println!("http://{}", server.address());
    server.watch(&mut |number, request| println!("{}", line(number, request)))
}

fn line(number: usize, request: &Request) -> String {
    let rule = request.rule.map_or("no rule".to_string(), |rule| format!("rule {}", rule + 1));
    let last: String = request.last.chars().take(60).collect();
    format!("{number} {:?} {} {rule}, round {}: {last:?}", request.api, request.model, request.rounds)
}
