"""What may leave the target of an engine's command line and environment: these names, and values of a harmless form."""

from __future__ import annotations

_ENVIRONMENT = (
    "CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER CUDA_FORCE_PTX_JIT CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING "
    "CUDA_VISIBLE_DEVICES GGML_CUDA_FORCE_MMQ GGML_CUDA_NO_PINNED LD_LIBRARY_PATH LD_PRELOAD MKL_NUM_THREADS "
    "NCCL_ALGO NCCL_BUFFSIZE NCCL_CUMEM_ENABLE NCCL_CUMEM_HOST_ENABLE NCCL_DEBUG NCCL_IB_DISABLE NCCL_LAUNCH_MODE "
    "NCCL_MAX_NCHANNELS NCCL_MIN_NCHANNELS NCCL_NET_GDR_LEVEL NCCL_NVLS_ENABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL "
    "NCCL_PROTO NCCL_SHM_DISABLE NCCL_SOCKET_IFNAME NVIDIA_DRIVER_CAPABILITIES NVIDIA_VISIBLE_DEVICES "
    "OLLAMA_FLASH_ATTENTION OLLAMA_KV_CACHE_TYPE OLLAMA_LLM_LIBRARY OLLAMA_NUM_PARALLEL OMP_NUM_THREADS "
    "OPENBLAS_NUM_THREADS PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF PYTORCH_NO_CUDA_MEMORY_CACHING "
    "SGLANG_ENABLE_JIT_DEEPGEMM TOKENIZERS_PARALLELISM TORCHDYNAMO_DISABLE TORCH_COMPILE_DISABLE TORCH_CUDA_ARCH_LIST "
    "VLLM_ATTENTION_BACKEND VLLM_FLASHINFER_MOE_BACKEND VLLM_LOGGING_LEVEL VLLM_SKIP_P2P_CHECK VLLM_TRACE_FUNCTION "
    "VLLM_USE_FLASHINFER_MOE_FP4 VLLM_USE_FLASHINFER_SAMPLER VLLM_USE_V1 VLLM_WORKER_MULTIPROC_METHOD"
)

_FLAGS = (
    "--disable-cuda-graph --disable-custom-all-reduce --disable-overlap-schedule --disable-radix-cache "
    "--enable-expert-parallel --enable-prefix-caching --enable-torch-compile --enforce-eager --flash-attn "
    "--no-enable-chunked-prefill --no-enable-prefix-caching --no-enforce-eager --no-mmap --enable-dp-attention"
)

_VALUED = (
    "--attention-backend --batch-size --block-size --context-length --cpu-offload-gb --cuda-graph-max-bs "
    "--data-parallel-size --dp --dp-size --dtype --gpu-layers --gpu-memory-utilization --kv-cache-dtype --main-gpu "
    "--max-model-len --max-num-batched-tokens --max-num-seqs --max-running-requests --mem-fraction-static "
    "--moe-backend --moe-runner-backend --n-gpu-layers --numa --parallel --pipeline-parallel-size --quantization "
    "--split-mode --swap-space --tensor-parallel-size --threads --tp --tp-size -ngl -tp"
)

ENVIRONMENT, FLAGS, VALUED = _ENVIRONMENT.split(), _FLAGS.split(), _VALUED.split()

HARMLESS = "A-Za-z0-9_.,:/=+-"
"""Of a value; with anything else in it, or longer than 200 characters, a value is withheld and only its name told."""
