#!/bin/bash
# A SLURM job that starts Ray on its nodes and runs a command of RL4Sys. Written by `rl4sys cluster init slurm`; yours
# to change. Check it offline with `rl4sys cluster check FILE`, then `rl4sys cluster run FILE -- sweep my_sweep.yaml`.
#
# For trials that need no Ray, `rl4sys sweep my_sweep.yaml --on slurm` is simpler: one job per trial.
#
#SBATCH --job-name=@@name@@
#SBATCH --nodes=@@nodes@@
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=@@cpus@@
#SBATCH --time=@@time@@
#SBATCH --partition=@@partition@@
#SBATCH --output=%x-%j.out
# A job that is preempted, or whose node fails, starts again; runs continue from their last checkpoints.
#SBATCH --requeue
# SIGTERM 120 s before the time limit, so that runs are saved.
#SBATCH --signal=B:TERM@120

set -e
export PATH=@@environment@@:$PATH
export RAY_AUTH_MODE=token
export RAY_AUTH_TOKEN_PATH=@@token_file@@

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
# A port and a directory of this job's own: other jobs of yours may run Ray on the same machines.
port=$((20000 + SLURM_JOB_ID % 20000))
directory=/tmp/rl4sys-ray-$SLURM_JOB_ID
common="--num-cpus $SLURM_CPUS_PER_TASK --disable-usage-stats --block"

srun --nodes=1 --ntasks=1 -w "${nodes[0]}" \
  ray start --head --node-ip-address="${nodes[0]}" --port=$port --include-dashboard=false --temp-dir="$directory" $common &
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 -w "$node" ray start --address="${nodes[0]}:$port" $common &
done

export RAY_ADDRESS="${nodes[0]}:$port"
until ray status > /dev/null 2>&1; do sleep 2; done

# No `ray stop`: it would end every Ray of yours on these machines. SLURM ends the steps of this job with it.
"$@" &
command=$!
trap 'kill -TERM $command' TERM
while kill -0 $command 2> /dev/null; do wait $command || true; done
wait $command && code=0 || code=$?
exit $code
