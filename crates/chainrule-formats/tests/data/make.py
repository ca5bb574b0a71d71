"""Writes the files of this folder with the programs whose formats they have: torch, numpy,
safetensors and gguf. Run it with these installed; the files are kept, and tests read them."""

import numpy as np, torch, gguf, json, io, os
from safetensors.torch import save_file
d=os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(1); rng=np.random.default_rng(1)
base=torch.randn(6,4)
from collections import OrderedDict
state=OrderedDict(w=torch.nn.Parameter(base), bias=torch.randn(4).half(), t=base.t()[1:3], row=base[2], tied=base, long=torch.tensor([-5,7]), flag=torch.tensor([True,False]), bf=torch.randn(3).bfloat16(), scalar=torch.tensor(2.5,dtype=torch.float64), empty=torch.zeros(0,3), u16=torch.tensor([1,65535],dtype=torch.uint16), wide=torch.randn(3,1).expand(3,4))
sd={k:v.detach().clone().contiguous() for k,v in state.items()}
save_file(sd,f'{d}/torch.safetensors')
nest={'model':state,'epoch':3,'lr':[0.5,None,(True,'x')]}
torch.save(nest,f'{d}/nest.pt')
torch.save({'model':OrderedDict((k,v) for k,v in state.items() if k!='u16')},f'{d}/legacy.pt',_use_new_zipfile_serialization=False)
a={'w':rng.normal(size=(3,5)).astype('f4'),'f':np.asfortranarray(rng.normal(size=(3,4))),'big':np.arange(6,dtype='>i4').reshape(2,3),'zero':np.array(1.5),'half':np.array([1,2],dtype='f2'),'none':np.zeros((0,2),'f4')}
np.savez(f'{d}/stored.npz',**a); np.savez_compressed(f'{d}/packed.npz',**a); np.save(f'{d}/one.npy',a['f'])
save_file({k:torch.from_numpy(np.ascontiguousarray(v.astype(v.dtype.newbyteorder('=')))).reshape(v.shape) for k,v in a.items()},f'{d}/numpy.safetensors')
w=gguf.GGUFWriter(f'{d}/quants.gguf','llama'); w.add_uint32('llama.block_count',2); w.add_array('tokenizer.tokens',['a','b"c']); w.add_float32('llama.eps',1e-5)
exp={}
Q=gguf.GGMLQuantizationType
for n,q in dict(q8_0=Q.Q8_0,q4_0=Q.Q4_0,q4_k=Q.Q4_K,q6_k=Q.Q6_K).items():
    bs,ts=gguf.GGML_QUANT_SIZES[q]
    rows=3; nb=2*rows
    raw=rng.integers(0,256,size=(nb,ts),dtype=np.uint8)
    # scales must be finite f16
    f16=lambda k:rng.normal(size=(nb,1)).astype('<f2').view(np.uint8)
    if n in('q8_0','q4_0'): raw[:,:2]=f16(0)
    if n=='q4_k': raw[:,:2]=f16(0); raw[:,2:4]=f16(0)
    if n=='q6_k': raw[:,-2:]=f16(0)
    raw=raw.reshape(rows,2*ts)
    w.add_tensor(n,raw,raw_dtype=q)
    exp[n]=torch.from_numpy(gguf.quants.dequantize(raw,q).astype('f4').reshape(rows,2*bs))
p=rng.normal(size=(2,3)).astype('f4'); w.add_tensor('plain',p); exp['plain']=torch.from_numpy(p)
h=p.astype('f2'); w.add_tensor('half',h); exp['half']=torch.from_numpy(h)
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
save_file(exp,f'{d}/gguf.safetensors')
save_file({'a':sd['w']},f'{d}/shard-1.safetensors'); save_file({'b':sd['long'],'c':sd['row']},f'{d}/shard-2.safetensors')
json.dump({'metadata':{},'weight_map':{'a':'shard-1.safetensors','b':'shard-2.safetensors','c':'shard-2.safetensors'}},open(f'{d}/shards.index.json','w'))
kinds={'set':{7},'frozen':frozenset(['a']),'devices':[torch.device('cuda:1'),torch.device('cpu'),torch.device('cuda')],'size':torch.Size([2,3]),'w':base[0].clone()}
torch.save(kinds,f'{d}/kinds.pt'); torch.save(kinds,f'{d}/kinds-legacy.pt',_use_new_zipfile_serialization=False); torch.save(kinds,f'{d}/kinds-4.pt',pickle_protocol=4)
# Tensors that are more than a view of a storage, numbers beyond 64 bits, and the earlier format by
# a later protocol.
tagged=base[0].clone(); tagged.note='kept'; odd=torch.nn.Parameter(base[1].clone()); odd.note='kept'
more={'buffer':torch.nn.Buffer(base[2].clone()),'tagged':tagged,'parameter':odd,'large':2**127+5,'less':-2**64,'low':-2**63,'high':2**64-1}
for protocol in (2,5):
    torch.save(more,f'{d}/attributes-{protocol}.pt',pickle_protocol=protocol)
    torch.save(more,f'{d}/attributes-legacy-{protocol}.pt',_use_new_zipfile_serialization=False,pickle_protocol=protocol)
torch.save({'w':torch.complex(base,base).conj().imag},f'{d}/negated.pt')
class Evil:
    def __reduce__(self): return (os.system,('echo hacked',))
torch.save({'w':base,'e':Evil()},f'{d}/evil.pt')
for f in os.listdir(d): print(f,os.path.getsize(f'{d}/{f}'))
