import { attention, bugs } from './attention';
import type { Lesson } from './kit';
import { batchNorm, collapse, names, softmax } from './losses';
import { accumulation, chainRule, elementwise } from './scalars';
import { broadcast, embeddings, matmul } from './tensors';
import { checkpointing, clipping, gradientCheck, ownTraining, saturation } from './training';

export const lessons: Lesson[] = [
  chainRule,
  accumulation,
  matmul,
  broadcast,
  elementwise,
  softmax,
  batchNorm,
  names,
  collapse,
  ownTraining,
  saturation,
  gradientCheck,
  clipping,
  embeddings,
  checkpointing,
  attention,
  bugs,
];
