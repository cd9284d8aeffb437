package sqlite_test
import ("testing";"sync";"time";"fmt";"mcpledger/events";"mcpledger/events/sqlite";sq "modernc.org/sqlite")
func TestZZ(t *testing.T){
 l,_:=sqlite.Open(ctx,t.TempDir(),sqlite.Options{Now:time.Now})
 var bs [][]events.Event
 for range 64*400 { bs=append(bs,[]events.Event{callStarted()}) }
 b:=time.Now()
 var wg sync.WaitGroup
 for i:=range 64{ wg.Go(func(){ for j:= range 400 { l.Append(ctx,bs[i*400+j]) } }) }
 wg.Wait()
 d:=time.Since(b)
 n:=time.Duration(sqlite.NTX)
 fmt.Println(25600/d.Seconds(),"tx",sqlite.NTX,"per tx: wall",d/n,"transact",sqlite.D1/n,"commit",sqlite.D2/n,"gather",sqlite.D3/n,sqlite.Hist)
 l.Close()
}
func init(){ sq.Fdatasync(true) }
func TestZF(t *testing.T){
 b:=&testing.B{}
 _ = b
 testing.Benchmark(func(b *testing.B){
  f:=newFloor(b)
  var rows [][]any
  for range 64*400 { rows=append(rows,f.row()) }
  var ins,com time.Duration
  t0:=time.Now()
  for i:=range 400 {
   tx,_:=f.db.Begin(); st:=tx.Stmt(f.insert); t1:=time.Now()
   for _,r:=range rows[i*64:i*64+64] { st.Exec(r...) }
   ins+=time.Since(t1); t1=time.Now(); tx.Commit(); com+=time.Since(t1)
  }
  fmt.Println("floor tx per: wall",time.Since(t0)/400,"insert",ins/400,"commit",com/400)
  b.N=1
 })
}
