//! Measures what only the product's own code can: the bench `measures` of `tribunal-runner` takes the figures, and here are their
//! rows.

use anyhow::Result;

use super::calibration::{CalibrationUnit, TimeLimit};
use super::table::{BenchFigure, BenchRow, BenchTime};
use super::{BuiltPrograms, find_value};

/// Takes the CPU time of this name from the values.
fn create_cpu_row(label: &str, values: &[(String, f64)], measure_name: &str, limit: TimeLimit) -> BenchRow {
    let cpu_ms = find_value(values, measure_name);
    BenchRow::from_result(label, cpu_ms.map(|cpu_ms| BenchRow::from_time(label, BenchTime::Cpu(cpu_ms), limit)))
}

pub fn measure_sandbox(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let delay_ms = find_value(&built.run_measures(&["sandbox"])?, "sandbox")?;
    let limit = CalibrationUnit::Process.at_most(1.8);
    Ok(vec![BenchRow::from_time("agent process: delay by the sandbox (wall)", BenchTime::Wall(delay_ms), limit)])
}

pub fn measure_overhead(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    const EXECS_LABEL: &str = "agent process: programs executed";
    let values = built.run_measures(&["overhead"])?;
    // The number of started programs needs strace, which many machines do not have.
    let execs_row = match find_value(&values, "execs") {
        Ok(exec_count) => BenchRow::new(EXECS_LABEL, BenchFigure::Count(exec_count), BenchFigure::Count(2.0)),
        Err(_) => BenchRow::without_strace(EXECS_LABEL),
    };
    let limit = CalibrationUnit::Process.at_most(10.0);
    Ok(vec![create_cpu_row("agent process: our CPU for one", &values, "overhead", limit), execs_row])
}

pub fn measure_many_agents(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let values = built.run_measures(&["at-once"])?;
    let agent_count = find_value(&values, "at-once-agents")?;
    Ok(vec![
        BenchRow::new(
            &format!("{agent_count} agents at once: our memory"),
            BenchFigure::Megabytes(find_value(&values, "at-once")?),
            BenchFigure::Megabytes(150.0),
        ),
        create_cpu_row(
            &format!("{agent_count} agents at once: our CPU for one"),
            &values,
            "at-once-cpu",
            CalibrationUnit::Process.without_limit(),
        ),
    ])
}

pub fn measure_replay(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let values = built.run_measures(&["replay"])?;
    let label = format!("replay of {} events (store, view, history)", find_value(&values, "replay-events")?);
    Ok(vec![create_cpu_row(&label, &values, "replay", CalibrationUnit::Cpu.at_most(120.0))])
}

pub fn measure_masking(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let values = built.run_measures(&["masking"])?;
    Ok(vec![create_cpu_row("masking of 1 MB", &values, "masking", CalibrationUnit::Cpu.at_most(0.8))])
}

pub fn measure_loop_check(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let values = built.run_measures(&["loops"])?;
    let label = format!("loop check of two outputs of {} KB, the worst", find_value(&values, "loops-kilobytes")?);
    Ok(vec![create_cpu_row(&label, &values, "loops", CalibrationUnit::Cpu.at_most(6.0))])
}
