//! Place among the ranks, as launchers tell it.

use crate::{ExchangeError, Result};

/// Most ranks that can be started.
pub const MAX_RANKS: usize = 4096;

/// Variables of launchers: number of ranks, this one, and the number on this machine.
const LAUNCHERS: [[&str; 3]; 4] = [
    // torchrun, Kubernetes' PyTorchJob, and whoever sets them by hand.
    ["WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"],
    // mpirun of Open MPI.
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    // mpirun of MPICH and what descends from it.
    ["PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"],
    // srun; the script of sbatch itself is no step of several tasks.
    ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE"],
];

/// Place among the ranks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The number of this rank, from 0.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
    /// Host and port at which rank 0 waits for the others.
    pub address: String,
    /// The number of ranks on this machine, where the launcher tells it.
    pub local: Option<usize>,
    /// The secret of the run, if it was given.
    pub token: Option<String>,
}

impl Launch {
    /// Place that the launcher wrote into the environment: `WORLD_SIZE` and `RANK`, or the
    /// variables of Open MPI, MPICH or Slurm; `MASTER_ADDR` and `MASTER_PORT`; `CHAINRULE_TOKEN`.
    /// `None` where there is one rank.
    ///
    /// Errors for a number that is none, for a rank beyond the ranks, and where the ranks are on
    /// several machines and no `MASTER_ADDR` says where they meet.
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
        for [sizes, ranks, locals] in LAUNCHERS {
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
            let is_one_machine = local == Some(size);
            let host = match variable("MASTER_ADDR").filter(|host| !host.trim().is_empty()) {
                Some(host) => host.trim().to_string(),
                None if is_one_machine => "127.0.0.1".into(),
                None => {
                    return Err(ExchangeError::Settings(
                        "MASTER_ADDR is not set: set it to the host of rank 0, or to 127.0.0.1 if all \
                         ranks are on this machine"
                            .into(),
                    ));
                }
            };
            let port = match variable("MASTER_PORT") {
                None => 29500,
                Some(text) => {
                    text.trim().parse::<u16>().ok().filter(|&p| p > 0).ok_or_else(|| {
                        let text: String =
                            text.chars().filter(|c| !c.is_control()).take(40).collect();
                        ExchangeError::Settings(format!(
                            "MASTER_PORT is `{text}`, and a port is 1 to 65535"
                        ))
                    })?
                }
            };
            // An address of version 6 stands in brackets before a port.
            let host = if host.contains(':') && !host.starts_with('[') {
                format!("[{host}]")
            } else {
                host
            };
            let token = variable("CHAINRULE_TOKEN").filter(|token| !token.is_empty());
            let address = format!("{host}:{port}");
            return Ok(Some(Launch { rank, size, address, local, token }));
        }
        Ok(None)
    }
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
        let mpirun = [
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(launched(&mpirun).unwrap().unwrap().address, "127.0.0.1:29500");
        let six = [("WORLD_SIZE", "2"), ("RANK", "0"), ("MASTER_ADDR", "::1")];
        assert_eq!(launched(&six).unwrap().unwrap().address, "[::1]:29500");
        assert_eq!(launched(&[]), Ok(None));
        assert_eq!(launched(&[("WORLD_SIZE", "1"), ("RANK", "0")]), Ok(None));
    }

    #[test]
    fn wrong_variables_are_one_line() {
        let cases: [&[(&str, &str)]; 7] = [
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
