//! Rank and address from the launcher's environment.

use crate::{ExchangeError, Result};

/// Most ranks that can be started.
pub const MAX_RANKS: usize = 4096;

/// Environment variables of launchers: number of ranks, rank, local rank, and run id.
const LAUNCHERS: [[&str; 4]; 4] = [
    // torchrun, Kubernetes' PyTorchJob, and manual launches.
    ["WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"],
    // mpirun of Open MPI.
    [
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMIX_NAMESPACE",
    ],
    // mpirun of MPICH and its derivatives.
    ["PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "PMI_JOBID"],
    // srun; the script of sbatch itself is not a step with several tasks.
    ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"],
];

/// Ports after the first on which rank 0 may fall back, unless the port was chosen by hand.
const SPARE_PORTS: u16 = 15;

/// Rank, size and address of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// This rank, from 0.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
    /// Host and port on which rank 0 listens.
    pub address: String,
    /// Number of further ports on which rank 0 may fall back if that one is in use; the others try
    /// all of them.
    pub spare_ports: u16,
    /// The launcher's id of the run, which separates runs on one machine.
    pub run: Option<String>,
    /// Number of ranks on this machine, if known.
    pub local: Option<usize>,
    /// The shared secret of the run, if given.
    pub token: Option<String>,
}

impl Launch {
    /// Reads the launcher's environment: `WORLD_SIZE` and `RANK`, or the variables of Open MPI,
    /// MPICH or Slurm; `MASTER_ADDR` and `MASTER_PORT`; `CHAINRULE_TOKEN`. `None` for a single
    /// rank.
    ///
    /// Errors for an invalid number, for a rank out of range, for a rank beyond 0 without a number
    /// of ranks, and for several machines without `MASTER_ADDR`.
    pub fn from_env() -> Result<Option<Launch>> {
        Launch::from_variables(|name| std::env::var(name).ok())
    }

    /// As [`Launch::from_env`], with these variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Launch>> {
        let number = |name: &str| match variable(name) {
            None => Ok(None),
            Some(text) => text.trim().parse::<usize>().map(Some).map_err(|_| {
                let text: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
                ExchangeError::Settings(format!("{name} is `{text}`, which is no number of ranks"))
            }),
        };
        for [sizes, ranks, locals, run] in LAUNCHERS {
            let Some(size) = number(sizes)? else { continue };
            if size == 1 {
                return Ok(None);
            }
            let Some(rank) = number(ranks)? else {
                let why = format!("{sizes} is {size}, but {ranks} does not say which one this is");
                return Err(ExchangeError::Settings(why));
            };
            if size == 0 || size > MAX_RANKS || rank >= size {
                return Err(ExchangeError::Settings(format!(
                    "{ranks} {rank} of {sizes} {size}: there are 1 to {MAX_RANKS} ranks, counted from 0"
                )));
            }
            let local: Option<usize> = variable(locals).and_then(|n| n.trim().parse().ok());
            let host = host(&variable, local == Some(size))?;
            let (port, spare_ports) = ports(&variable)?;
            return Ok(Some(Launch {
                rank,
                size,
                address: format!("{host}:{port}"),
                spare_ports,
                run: variable(run).filter(|run| !run.is_empty()),
                local,
                token: variable("CHAINRULE_TOKEN").filter(|token| !token.is_empty()),
            }));
        }
        // A rank beyond 0 implies others, even if the size is missing.
        for [sizes, ranks, ..] in LAUNCHERS {
            let rank = variable(ranks).and_then(|text| text.trim().parse::<usize>().ok());
            if let Some(rank) = rank.filter(|&rank| rank > 0) {
                let why = format!("{ranks} is {rank}, but {sizes} does not say how many there are");
                return Err(ExchangeError::Settings(why));
            }
        }
        Ok(None)
    }
}

/// The host of rank 0, formatted for a port.
fn host(variable: &impl Fn(&str) -> Option<String>, is_one_machine: bool) -> Result<String> {
    // Launchers may give the machine's network name where loopback is enough.
    if is_one_machine {
        return Ok("127.0.0.1".into());
    }
    let given = variable("MASTER_ADDR").map(|host| host.trim().to_string());
    match given.filter(|host| !host.is_empty()) {
        // An IPv6 address is put in brackets before a port.
        Some(host) if host.contains(':') && !host.starts_with('[') => Ok(format!("[{host}]")),
        Some(host) => Ok(host),
        None => Err(ExchangeError::Settings(
            "MASTER_ADDR is not set: set it to the host of rank 0, or to 127.0.0.1 if all ranks are on \
             this machine"
                .into(),
        )),
    }
}

/// The port of rank 0, and the number of fallback ports.
fn ports(variable: &impl Fn(&str) -> Option<String>) -> Result<(u16, u16)> {
    let Some(text) = variable("MASTER_PORT") else { return Ok((29500, SPARE_PORTS)) };
    let port = text.trim().parse::<u16>().ok().filter(|&p| p > 0).ok_or_else(|| {
        let text: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
        ExchangeError::Settings(format!("MASTER_PORT is `{text}`, and a port is 1 to 65535"))
    })?;
    // The agent of torchrun listens on the port itself for as long as the run lasts.
    let is_taken = variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|is| is.trim() == "True");
    Ok(match port.checked_add(1 + SPARE_PORTS) {
        _ if !is_taken => (port, 0),
        Some(_) => (port + 1, SPARE_PORTS),
        None => (port - 1 - SPARE_PORTS, SPARE_PORTS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(variables: &[(&str, &str)]) -> Result<Option<Launch>> {
        Launch::from_variables(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn launchers_are_known() {
        let torchrun =
            [("WORLD_SIZE", "4"), ("RANK", "3"), ("MASTER_ADDR", "node0"), ("MASTER_PORT", "1234")];
        let launch = launched(&torchrun).unwrap().unwrap();
        assert_eq!((launch.rank, launch.size, &launch.address[..]), (3, 4, "node0:1234"));
        // A port that was chosen by hand is final.
        assert_eq!(launch.spare_ports, 0);
        let mpirun = [
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(launched(&mpirun).unwrap().unwrap().address, "127.0.0.1:29500");
        // The agent of torchrun has its own port, and the machine's name is not needed on it.
        let agent = |port| {
            [
                ("WORLD_SIZE", "4"),
                ("RANK", "3"),
                ("LOCAL_WORLD_SIZE", "4"),
                ("MASTER_ADDR", "node0.example"),
                ("MASTER_PORT", port),
                ("TORCHELASTIC_USE_AGENT_STORE", "True"),
                ("TORCHELASTIC_RUN_ID", "none"),
            ]
        };
        let launch = launched(&agent("1234")).unwrap().unwrap();
        assert_eq!((&launch.address[..], launch.spare_ports), ("127.0.0.1:1235", SPARE_PORTS));
        assert_eq!(launch.run.as_deref(), Some("none"));
        assert_eq!(launched(&agent("65535")).unwrap().unwrap().address, "127.0.0.1:65519");
        let six = [("WORLD_SIZE", "2"), ("RANK", "0"), ("MASTER_ADDR", "::1")];
        assert_eq!(launched(&six).unwrap().unwrap().address, "[::1]:29500");
        assert_eq!(launched(&[]), Ok(None));
        assert_eq!(launched(&[("WORLD_SIZE", "1"), ("RANK", "0")]), Ok(None));
        // The script of sbatch, and an unrelated variable.
        assert_eq!(launched(&[("SLURM_PROCID", "0"), ("RANK", "of the colonel")]), Ok(None));
    }

    #[test]
    fn wrong_variables_are_one_line() {
        let cases: [&[(&str, &str)]; 9] = [
            &[("RANK", "1"), ("MASTER_ADDR", "a")],
            &[("OMPI_COMM_WORLD_RANK", "2")],
            &[("WORLD_SIZE", "many"), ("RANK", "0")],
            &[("WORLD_SIZE", "2")],
            &[("WORLD_SIZE", "2"), ("RANK", "2"), ("MASTER_ADDR", "a")],
            &[("WORLD_SIZE", "0"), ("RANK", "0"), ("MASTER_ADDR", "a")],
            &[("WORLD_SIZE", "2"), ("RANK", "0")],
            &[("WORLD_SIZE", "2"), ("RANK", "0"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "0")],
            &[("WORLD_SIZE", "99999999"), ("RANK", "0"), ("MASTER_ADDR", "a")],
        ];
        for case in cases {
            let error = launched(case).unwrap_err().to_string();
            assert!(!error.contains('\n') && error.len() > 20, "{error}");
        }
    }
}
